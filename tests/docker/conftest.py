"""A setup that writes below a scratch directory and starts nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import stack_setup


@pytest.fixture
def relocated_setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Path]], list[str]]:
    """Return a function that replaces the setup's commands by notes, each of which makes an environment's directory."""

    def relocate(environment: Callable[[], Path]) -> list[str]:
        ran: list[str] = []
        monkeypatch.setattr(stack_setup, "CHECKOUT", tmp_path)
        monkeypatch.setattr(stack_setup, "LOCAL", tmp_path / ".local")
        monkeypatch.setattr(stack_setup, "project_fingerprint", lambda: f"{tmp_path} 1")
        monkeypatch.setattr(stack_setup, "find_uv", lambda: Path("uv"))
        monkeypatch.setattr(stack_setup, "find_java", lambda: pytest.fail("Java was looked for"))

        def run(*words: object) -> None:
            ran.append(" ".join(map(str, words)))
            environment().mkdir(exist_ok=True)

        monkeypatch.setattr(stack_setup, "run", run)
        return ran

    return relocate
