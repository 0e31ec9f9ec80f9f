"""A server that is ended is gone with all of its threads, and so with its ports."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from local_process import LocalProcess


def test_the_end_is_waited_for_until_no_thread_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process loses its command line first, then its leading thread, and its ports with the last one."""
    process = LocalProcess(tmp_path, f"sleep 600 # {tmp_path}", name="sleeper")
    process.launch("sh", "-c", f"sleep 600 # {tmp_path}")
    states, run = ["R\n", "Zl\n", "Zl\n", "Z\n"], subprocess.run
    asked = []

    def answered(command: Any, **arguments: Any) -> Any:
        if "stat=" not in command:
            return run(command, check=False, **{key: arguments[key] for key in arguments if key != "check"})
        asked.append(states.pop(0))
        return SimpleNamespace(stdout=asked[-1])

    monkeypatch.setattr(subprocess, "run", answered)
    process.end(signal.SIGKILL, 30)

    assert (asked, process.pid) == (["R\n", "Zl\n", "Zl\n", "Z\n"], None)
