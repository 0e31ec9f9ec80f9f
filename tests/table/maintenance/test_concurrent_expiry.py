"""Two processes expire the same table concurrently: neither fails, and no needed file is deleted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from storage_lib import DynamicTable
from storage_lib.io.file_io import FileIO
from tests.support.deep_tests import each_value_once
from tests.support.every_file import data_files, needed_by_snapshots
from tests.support.faulty_file_io import FaultKind, FaultyFileIO
from tests.support.orders_table import content, orders, reopened, rows

Act = Callable[[DynamicTable], object]

ACTS: dict[str, Act] = {
    "tags": lambda table: table.tags.expire(),
    "branches": lambda table: table.branches.expire(),
    "snapshots": lambda table: table.maintenance.expire_snapshots(retain_last=1),
    "older snapshots": lambda table: table.maintenance.expire_snapshots(retain_last=2),
}


class MeetingFileIO(FaultyFileIO):
    """Calls ``act`` of another process before the ``at``-th I/O."""

    def __init__(self, delegate: FileIO, at: int, act: Callable[[], object]) -> None:
        super().__init__(delegate)
        self._at = at
        self._act = act

    def _struck(self, operation: str, path: str) -> FaultKind | None:
        self.calls.append((operation, path))
        if len(self.calls) == self._at:
            self._act()
        return None


def lived() -> DynamicTable:
    """Create four expired snapshots; a tag and a branch keep files that nothing else needs."""
    table = orders(None, **{"log.system": "none"})
    for price in (1, 2, 3):
        table.append(rows(f"+U a 1 {price}"))
    table.tags.create("kept", 1, time_retained="1 h")
    table.branches.create("dev", snapshot_id=2, time_retained="1 h")
    table.branches.open("dev").append(rows("+U a 2 1"))
    table.compact()
    table.environment.clock.sleep(3600)
    return table


@pytest.mark.parametrize(
    ("one", "other"),
    each_value_once(
        [
            ("tags", "snapshots"),
            ("snapshots", "branches"),
            ("branches", "branches"),
            ("snapshots", "tags"),
            ("older snapshots", "snapshots"),
            ("tags", "tags"),
            ("branches", "snapshots"),
            ("snapshots", "snapshots"),
        ]
    ),
)
def test_two_expiries_at_once_both_end_well(one: str, other: str) -> None:
    at, is_over = 0, False
    while not is_over:
        at += 1
        table = lived()
        meeting = MeetingFileIO(table.environment.file_io, at, partial(ACTS[other], reopened(table)))

        ACTS[one](opened_over(table, meeting))

        is_over = len(meeting.calls) < at
        for act in ACTS.values():
            act(reopened(table))
        assert (table.tags.list(), table.branches.list()) == ((), ()), at
        assert content(reopened(table)) == {"a 1 3"}, at
        assert data_files(table) == needed_by_snapshots(reopened(table).context.file_store), at
    assert at > 5


def opened_over(table: DynamicTable, files: FileIO) -> DynamicTable:
    environment = table.environment
    table.environment = replace(environment, file_io=files)
    try:
        return reopened(table)
    finally:
        table.environment = environment
