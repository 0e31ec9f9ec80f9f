"""Threads that sync files, kept for the life of a process."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from storage_lib.io.local.sync_threads import SYNC_THREADS

PATIENCE_SECONDS = 30


def some_files(directory: Path, count: int = 5) -> list[str]:
    paths = [directory / f"f{each}" for each in range(count)]
    for path in paths:
        path.write_bytes(b"x")
    return [str(path) for path in paths]


def test_a_forked_process_syncs_by_threads_of_its_own(tmp_path: Path) -> None:
    paths = some_files(tmp_path, count=60)
    SYNC_THREADS.sync(paths)

    child = os.fork()
    if child == 0:
        try:
            SYNC_THREADS.sync(paths[:2])
            os._exit(0)
        finally:
            os._exit(1)
    ended = os.pidfd_open(child)
    try:
        assert select.select([ended], [], [], PATIENCE_SECONDS)[0], "the forked process waits for ever"
    finally:
        os.close(ended)
        os.kill(child, signal.SIGKILL)  # which does nothing to one that has ended
        _, status = os.waitpid(child, 0)
    assert status == 0


def test_a_failed_sync_is_raised_after_all_others_were_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = some_files(tmp_path)
    missing = str(tmp_path / "missing")
    tried: list[int] = []
    monkeypatch.setattr(os, "fsync", tried.append)

    with pytest.raises(FileNotFoundError, match="missing"):
        SYNC_THREADS.sync([missing, *paths])

    assert len(tried) == len(paths)


SHUTDOWN = """
import atexit, sys
from storage_lib.io.local.sync_threads import SYNC_THREADS

SYNC_THREADS.sync(sys.argv[1:])
atexit.register(lambda: [SYNC_THREADS.sync(sys.argv[1:]), print("synced")])
"""


def test_files_are_synced_while_the_interpreter_shuts_down(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHUTDOWN, *some_files(tmp_path)], capture_output=True, text=True, check=False
    )

    assert (done.stdout, done.stderr) == ("synced\n", "")
