"""A server counts as running from its start; a stopped one has released all threads, and with them its ports."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import local_process
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


def test_a_server_that_is_about_to_become_its_program_is_not_taken_for_one_that_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """During its exec a process briefly has no command line; a busy machine prolongs that moment."""
    home, proc = tmp_path / "home", tmp_path / "proc"
    for path, text in (("self/stat", ""), ("7/stat", "7 (s) 3) R 1 7 7 0 -1 4194304 0"), ("7/cmdline", "")):
        (proc / path).parent.mkdir(parents=True, exist_ok=True)
        (proc / path).write_text(text)
    home.mkdir()
    (home / "s3.pid").write_text("7")
    monkeypatch.setattr(local_process, "PROC", proc)
    monkeypatch.setattr("local_process.time.sleep", lambda _: (proc / "7/cmdline").write_text("serve\0lake\0"))
    server = LocalProcess(home, "lake", name="s3")

    assert server.pid == 7

    (proc / "7/cmdline").write_text("")
    (proc / "7/stat").write_text("7 (serve) R 1 7 7 0 -1 4194308 0")
    assert server.pid is None, "it ends"


@pytest.mark.parametrize("identity", ["-Dhome=", "home="])
def test_a_server_ends_with_the_process_that_started_it_whatever_its_identity(tmp_path: Path, identity: str) -> None:
    starts = f"""
import sys
from pathlib import Path
from local_process import LocalProcess

server = LocalProcess(Path({str(tmp_path)!r}), {identity + str(tmp_path)!r}, name="sleeper")
server.launch("sh", "-c", "sleep 600 # {identity}{tmp_path}; true")
print(server.pid)
"""

    found = {**os.environ, "PYTHONPATH": str(Path(local_process.__file__).parent)}
    ended = subprocess.run([sys.executable, "-c", starts], env=found, capture_output=True, text=True, check=True)

    server = LocalProcess(tmp_path, f"{identity}{tmp_path}", name="sleeper")
    assert int(ended.stdout)
    deadline = time.monotonic() + 60
    while server.pid is not None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert server.pid is None
