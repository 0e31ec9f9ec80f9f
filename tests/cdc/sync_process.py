"""``dynamic-table sync`` as a process of its own, which may be killed at any moment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

__all__ = ["SyncProcess", "SyncedState"]

_PROGRAM = Path(sys.executable).parent / "dynamic-table"
_TRY_AGAIN = 75
_LONGEST = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncedState:
    """What the command printed of the tables, by name; ``message`` is what it said if it refused to run."""

    tables: Mapping[str, Mapping[str, Any]]
    is_worth_trying: bool
    message: str


class SyncProcess:
    """A running command."""

    def __init__(self, home: Path, options: Mapping[str, str], arguments: Sequence[str]) -> None:
        given = [part for key, value in options.items() for part in ("--option", f"{key}={value}")]
        command = [str(_PROGRAM), "--warehouse", str(home), "--json", *given, "sync", *arguments]
        self._command = command
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
        printed, said = self._process.communicate(timeout=_LONGEST)
        try:
            rows = json.loads(printed) if printed else []
        except ValueError as error:
            raise AssertionError(f"{' '.join(self._command)} printed {printed!r}, and said {said}") from error
        return SyncedState(
            tables={each["table"]: each for each in rows},
            is_worth_trying=self._process.returncode == _TRY_AGAIN,
            message=said,
        )
