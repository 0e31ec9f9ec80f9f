"""Heartbeat of a refresher: one small JSON file, replaced atomically, in the format of a sink's heartbeat."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from storage_lib.io.environment import Environment
from storage_lib.progress.sink_state import SinkState

_BEAT_SECONDS = 2.0
TABLES_KEPT = 1_000


@dataclass(slots=True)
class RefresherHeartbeat:
    """Writes the state of this process to ``path``; thread-safe.

    The file has ``state``, ``pid``, ``written_millis``, ``refresh_count`` (refreshes that committed since the start;
    missing before the first), ``error`` of a process that has failed, and ``tables``: by name, the last refresh or
    error of each, with its time ``millis``.
    """

    path: str
    environment: Environment
    _said: dict[str, Any] = field(default_factory=dict, init=False)
    _tables: dict[str, Mapping[str, Any]] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def say(self, **changes: Any) -> None:
        """Write the heartbeat with changed fields."""
        with self._lock:
            self._said |= changes
            beat = {
                "pid": os.getpid(),
                "written_millis": self.environment.clock.now_millis(),
                **self._said,
                "tables": self._tables,
            }
            self.environment.file_io.replace(self.path, json.dumps(beat, sort_keys=True).encode())

    def note(self, table: str, facts: Mapping[str, Any]) -> None:
        """Add the last refresh of a table, or its error; keeps the newest thousand tables."""
        with self._lock:
            self._tables.pop(table, None)
            self._tables[table] = {**facts, "millis": self.environment.clock.now_millis()}
            while len(self._tables) > TABLES_KEPT:
                del self._tables[next(iter(self._tables))]
            if facts.get("snapshot") is not None:
                self._said["refresh_count"] = self._said.get("refresh_count", 0) + 1
        self.say()

    @contextmanager
    def beating(self, error_text: Callable[[Exception], str]) -> Iterator[None]:
        """Write heartbeats until the block ends, and then its outcome. Needs a thread: a refresh may take long."""
        self.say(state=SinkState.STARTING)
        ended = threading.Event()

        def beat() -> None:
            while not ended.wait(_BEAT_SECONDS):
                self.say()

        thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
        thread.start()
        last: dict[str, Any] = {"state": SinkState.STOPPED}
        try:
            yield
        except Exception as error:
            last = {"state": SinkState.FAILED, "error": error_text(error)}
            raise
        finally:
            ended.set()
            thread.join()
            self.say(**last)
