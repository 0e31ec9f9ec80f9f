"""``dynamic-table sync`` as a process that is forked from one which has imported everything, and may be killed.

It starts in milliseconds, so that nearly every kill meets the work, and not the imports before it.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Self

from tests.cdc.sync_process import LONGEST, SyncedState, printed_by, state_of

__all__ = ["WarmSync"]

_IMPORTED = (
    "storage_lib.cli.sources.sync_command",
    "storage_lib.log_store.kafka.kafka_log_store",
    "storage_lib.log_store.kafka.kafka_topic_names",
    "storage_lib.sync.sync_database",
    "storage_lib.table.dynamic_table",
    "tests.cdc.sync_process",
)
_forking = multiprocessing.get_context("forkserver")
_forking.set_forkserver_preload([*_IMPORTED])


class WarmSync:
    """A running command; see ``SyncProcess``."""

    def __init__(self, home: Path, options: Mapping[str, str], arguments: Sequence[str]) -> None:
        self._told, telling = _forking.Pipe(duplex=False)
        self._process = _forking.Process(target=_run, args=(telling, home, {**options}, [*arguments]), daemon=True)
        self._process.start()
        telling.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """End the process, if it runs."""
        self.kill_after(0)
        self._told.close()

    def kill_after(self, seconds: float) -> bool:
        """Kill the process unless it ends before; return whether it had to be killed."""
        self._process.join(seconds)
        if self._process.exitcode is not None:
            return False
        self._process.kill()
        self._process.join()
        return True

    def ended(self) -> SyncedState:
        """Wait for its end, and return what it has done."""
        if not self._told.poll(LONGEST):
            message = f"the sync has not ended in {LONGEST} s"
            raise AssertionError(message)
        printed, said, exit_code = self._told.recv()
        self._process.join()
        return state_of(printed, said, exit_code)


def _run(telling: Connection, home: Path, options: Mapping[str, str], arguments: Sequence[str]) -> None:
    telling.send(printed_by(home, options, arguments))
    telling.close()
