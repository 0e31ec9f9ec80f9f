"""The pages cache a few boards, the newest of each connection."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dynamic_table.hook import DynamicTableHook
from dynamic_table.pages.kept_boards import KeptBoards


def hook(connection: str) -> DynamicTableHook:
    return DynamicTableHook(dynamic_table_conn_id=connection)


@pytest.fixture
def connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Define three connections, each with its own warehouse."""
    for name in ("one", "two", "three"):
        connect(monkeypatch, name, tmp_path / name)


def connect(monkeypatch: pytest.MonkeyPatch, name: str, warehouse: Path) -> None:
    extra = {"warehouse": str(warehouse), "options": {"log.system": "none"}}
    monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps({"conn_type": "dynamic_table", "extra": extra}))


@pytest.mark.usefixtures("connections")
def test_the_board_that_was_shown_least_recently_is_let_go() -> None:
    boards = KeptBoards(boards_max=2)
    one, two = boards.board(hook("one")), boards.board(hook("two"))
    assert boards.board(hook("one")) is one

    boards.board(hook("three"))

    assert len(boards) == 2
    assert boards.board(hook("one")) is one
    assert boards.board(hook("two")) is not two


@pytest.mark.usefixtures("connections")
def test_a_connection_that_was_changed_gets_another_board_instead_of_its_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boards = KeptBoards()
    old = boards.board(hook("one"))

    connect(monkeypatch, "one", tmp_path / "elsewhere")

    assert boards.board(hook("one")) is not old
    assert len(boards) == 1
