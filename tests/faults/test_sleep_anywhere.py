"""A writer of an eventual log stalls at any of its operations while another writer holds the lease, then resumes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from storage_lib import CommitConflictError, DynamicTable, LeaseLostError, MemoryCatalog
from storage_lib.io.local.memory_file_io import MemoryFileIO
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.table.protocol.source_offsets import SourceRange
from tests.support.fake_environment import fake_environment
from tests.support.faulty_file_io import FaultyFileIO
from tests.support.mortal_process import reopened_in
from tests.support.orders_table import applied, content, orders, rows, streamed
from tests.support.sleepy_storage import SleepyStorage

SOURCE = "theirs"


def _source(end: int, start: int | None = None) -> SourceRange:
    return SourceRange(source=SOURCE, start=None if start is None else LogOffsets({0: start}), end=LogOffsets({0: end}))


def _ingest(table: DynamicTable) -> None:
    table.append(rows("+U a 1 1", "+I b 1 1"), source=_source(2))


def _ingest_more(table: DynamicTable) -> None:
    """Ingest as a second process, which resumes at the offsets of the newest snapshot."""
    told = table.inspect.source_offsets(SOURCE)
    changes = ("+U a 1 1", "+I b 1 1", "+U a 1 2", "-D b 1 1")[0 if told is None else told.of(0) :]
    table.append(rows(*changes), source=_source(4, None if told is None else told.of(0)))


def _overwrite(table: DynamicTable) -> None:
    table.overwrite(rows("+I a 1 1", "+I b 1 1"), partition={})


def _overwrite_again(table: DynamicTable) -> None:
    table.overwrite(rows("+I a 1 2"), partition={})


@dataclass(frozen=True, kw_only=True)
class Case:
    """Action of the stalled process, action of another meanwhile, and the permitted results."""

    act: Callable[[DynamicTable], None]
    successor: Callable[[DynamicTable], None]
    results: tuple[set[str], ...]
    """The first result is that of a refused stalled process."""


@pytest.mark.parametrize(
    "case",
    [
        Case(act=_ingest, successor=_ingest_more, results=({"a 1 2"},)),
        Case(act=_overwrite, successor=_overwrite_again, results=({"a 1 2"}, {"a 1 1", "b 1 1"})),
    ],
    ids=["ingest", "overwrite"],
)
def test_a_writer_that_was_suspended_during_another_lease_never_writes_after_it(case: Case) -> None:
    lost = after = 0
    for at in range(1, 500):
        files = MemoryFileIO()
        options = {"log.consistency": "eventual", "lease.timeout": "1 s"}
        table = orders(MemoryCatalog(environment=fake_environment(files)), bucket="2", **options)
        table.append(rows("+I a 1 0"))
        woken = list[int]()

        def meanwhile(table: DynamicTable = table, files: MemoryFileIO = files, woken: list[int] = woken) -> None:
            woken.append(1)
            case.successor(reopened_in(FaultyFileIO(files), table, names="successor"))

        sleeper = reopened_in(SleepyStorage(files, at, meanwhile), table, names="sleeper")
        try:
            case.act(sleeper)
        except (LeaseLostError, CommitConflictError):
            lost += 1
            expected = case.results[:1]
        else:
            after += 1
            expected = case.results
        if not woken:
            break
        table.maintenance.tier_log()

        assert content(table) == applied(streamed(table)), f"slept before act {at}"
        assert content(table) in expected, f"slept before act {at}"
    else:
        pytest.fail("it never came to an end without sleeping")
    assert lost > 10
    assert after > 1
