"""Where a process can crash so that the stores differ: the run is observed once instead of repeated for each crash.

A crash before a read leaves what a crash before the next write leaves. ``CrashPoints`` therefore compares the state
of the stores before each I/O with that before the previous one, and calls ``changed`` if they differ.

points = CrashPoints(files, state=lambda: state_of(files), changed=lambda at: copies.append(copy_of(files)))
act(points)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING

import obstore
from obstore.store import MemoryStore

from storage_lib import DynamicTable
from storage_lib.io.local.memory_file_io import MemoryFileIO
from storage_lib.log_store.memory.memory_log_store import _LOGS
from tests.support.fake_environment import FakeClock
from tests.support.faulty_file_io import FaultKind, FaultyFileIO

if TYPE_CHECKING:
    from storage_lib.io.file_io import FileIO


class CrashPoints(FaultyFileIO):
    """Storage without faults that calls ``changed`` with the number of an I/O, from 1, before it is done.

    It does so for the first I/O and for every other one before which ``state`` differs from that before the previous
    one. ``calls`` then ends with this I/O, as it does after a crash there.
    """

    def __init__(self, delegate: FileIO, *, state: Callable[[], object], changed: Callable[[int], None]) -> None:
        super().__init__(delegate)
        self._state = state
        self._changed = changed
        self._last: object = None
        self._one_by_one = RLock()

    def _struck(self, operation: str, path: str) -> FaultKind | None:
        with self._one_by_one:
            struck = super()._struck(operation, path)
            state = self._state()
            if len(self.calls) == 1 or state != self._last:
                self._last = state
                self._changed(len(self.calls))
            return struck


@contextmanager
def named(crash: str) -> Iterator[None]:
    """Name the crash in the error of a check that fails after it."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"after a crash before {crash}")
        raise


def files_in(files: MemoryFileIO) -> dict[str, dict[str, object]]:
    """Return the files and directories by directory and name; equal if and only if the stored state is."""
    with files._lock:
        return {directory: dict(entries) for directory, entries in files._directories.items()}


def copy_of_files(files: MemoryFileIO) -> MemoryFileIO:
    """Return a store with the same files; what happens to one is not seen in the other."""
    copied = copy(files)
    copied._directories = files_in(files)  # type: ignore[assignment]  # the type of its entries is private
    copied._lock = RLock()
    return copied


def copy_of_table(table: DynamicTable) -> DynamicTable:
    """Open a copy of a table without a log, over files in memory and with a clock of its own that shows the same."""
    files, clock = table.environment.file_io, table.environment.clock
    assert isinstance(files, MemoryFileIO)
    assert isinstance(clock, FakeClock)
    assert table.log is None
    copied, its_clock = copy_of_files(files), FakeClock(clock.now_millis())
    copied._now_millis = its_clock.now_millis
    return DynamicTable(
        name=table.name,
        uuid=table.uuid,
        location=table.location,
        address=None,
        environment=replace(table.environment, file_io=copied, clock=its_clock),
        schema=table.schema,
        options=table.options,
        log=None,
    )


def logs_in_memory() -> dict[str, tuple[object, ...]]:
    """Return the ends of the buckets and the states of the transactions of each log in memory."""
    return {
        name: (log.log_id, [each.end_offset for each in log.buckets], [each.state for each in log._newest.values()])
        for name, log in _LOGS.items()
    }


def objects_in(memory: MemoryStore) -> dict[str, str | None]:
    """Return the version of each object by its path."""
    return {each["path"]: each["e_tag"] for page in obstore.list(memory) for each in page}


def copy_of_objects(memory: MemoryStore) -> MemoryStore:
    """Return a store with the same objects."""
    copied = MemoryStore()
    for path in objects_in(memory):
        obstore.put(copied, path, obstore.get(memory, path).bytes())
    return copied
