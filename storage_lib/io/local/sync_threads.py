"""Threads that sync files to the disk, kept for the life of the process.

A commit syncs a few files several times. To start threads for each time takes longer than the syncs on a fast disk.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

_THREADS_MAX = 16


class SyncThreads:
    """Runs fsync side by side: it mostly waits, and the disk combines concurrent ones. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None

    def sync(self, paths: list[str]) -> None:
        """Sync files and directories, also while the interpreter shuts down. Raises ``OSError``."""
        if len(paths) == 1:
            _sync(paths[0])
            return
        try:
            executor = self._started()
            futures = [executor.submit(_sync, path) for path in paths]
        except RuntimeError:
            # The interpreter shuts down, or can't start a thread: what was submitted is synced once more.
            for path in paths:
                _sync(path)
            return
        failures = [each.exception() for each in futures]
        for failure in failures:
            if failure is not None:
                raise failure

    def forget(self) -> None:
        """Start anew: a forked process has none of the threads."""
        self._lock = threading.Lock()
        self._executor = None

    def _started(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(_THREADS_MAX, thread_name_prefix="sync-files")
            return self._executor


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


SYNC_THREADS = SyncThreads()
os.register_at_fork(after_in_child=SYNC_THREADS.forget)
