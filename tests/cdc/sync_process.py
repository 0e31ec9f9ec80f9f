"""``dynamic-table sync`` as a process of its own, which may be killed at any moment, or in this process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from typer.testing import CliRunner

from storage_lib.cli.app import app

__all__ = ["LONGEST", "SyncProcess", "SyncedState", "printed_by", "state_of", "synced_here"]

_PROGRAM = Path(sys.executable).parent / "dynamic-table"
_TRY_AGAIN = 75
LONGEST = 120
"""Seconds that a command may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncedState:
    """What the command printed of the tables, by name; ``message`` is what it said if it refused to run."""

    tables: Mapping[str, Mapping[str, Any]]
    is_worth_trying: bool
    message: str


def synced_here(home: Path, options: Mapping[str, str], arguments: Sequence[str]) -> SyncedState:
    """Run the command in this process, which has imported it already."""
    return state_of(*printed_by(home, options, arguments))


def printed_by(home: Path, options: Mapping[str, str], arguments: Sequence[str]) -> tuple[str, str, int]:
    """Run the command in this process; return what it printed, what it said of errors, and its exit code."""
    ran = CliRunner().invoke(app, _given(home, options, arguments))
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    return ran.stdout, ran.stderr, ran.exit_code


def _given(home: Path, options: Mapping[str, str], arguments: Sequence[str]) -> list[str]:
    given = [part for key, value in options.items() for part in ("--option", f"{key}={value}")]
    return ["--warehouse", str(home), "--json", *given, "sync", *arguments]


def state_of(printed: str, said: str, exit_code: int) -> SyncedState:
    """Return what a command printed, as values."""
    try:
        rows = json.loads(printed) if printed else []
    except ValueError as error:
        raise AssertionError(f"the sync printed {printed!r}, and said {said}") from error
    return SyncedState(
        tables={each["table"]: each for each in rows}, is_worth_trying=exit_code == _TRY_AGAIN, message=said
    )


class SyncProcess:
    """A running command."""

    def __init__(self, home: Path, options: Mapping[str, str], arguments: Sequence[str]) -> None:
        command = [str(_PROGRAM), *_given(home, options, arguments)]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "200"}
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """End the process, if it runs."""
        self.kill_after(0)

    def kill_after(self, seconds: float) -> bool:
        """Kill the process unless it ends before; return whether it had to be killed."""
        try:
            self._process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            return True
        return False

    def ended(self) -> SyncedState:
        """Wait for its end, and return what it has done."""
        printed, said = self._process.communicate(timeout=LONGEST)
        return state_of(printed, said, self._process.returncode)
