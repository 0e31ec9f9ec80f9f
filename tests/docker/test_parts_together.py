"""Independent parts of the setup are made a few at once, and each failure is named."""

from __future__ import annotations

import threading

import pytest

import stack_setup
from stack_setup import SetupError, together


def test_parts_are_made_at_the_same_time() -> None:
    meeting = threading.Barrier(stack_setup.AT_ONCE, timeout=60)
    made: list[int] = []

    together(*(lambda: made.append(meeting.wait()) for _ in range(2 * stack_setup.AT_ONCE)))

    assert len(made) == 2 * stack_setup.AT_ONCE


def test_all_failures_are_told_and_the_other_parts_are_made() -> None:
    made: list[str] = []

    def failing(words: str) -> None:
        raise SetupError(words)

    with pytest.raises(SetupError, match="no Hadoop\nno Flink"):
        together(lambda: failing("no Hadoop"), lambda: made.append("registry"), lambda: failing("no Flink"))

    assert made == ["registry"]


def test_a_defect_of_the_setup_itself_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        together(lambda: 1 // 0, lambda: None)
