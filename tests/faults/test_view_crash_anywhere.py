"""Crash, or fail, at the k-th I/O of a table with an Iceberg view, for every k.

The view then shows a snapshot that the table has, with its rows, and the next commit publishes what is missing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import product

import pytest

from storage_lib import AddColumn, DynamicTable, NotFoundError, SetOption, SnapshotExpiredError
from storage_lib.io.file_io import FileIO
from storage_lib.io.local.memory_file_io import MemoryFileIO
from tests.support.crash_points import CrashPoints, copy_of_table, files_in, named
from tests.support.deep_tests import thinned
from tests.support.faulty_file_io import WRITES, Fault, FaultKind, FaultyFileIO
from tests.support.iceberg_readers import view_of
from tests.support.mortal_process import reopened_in
from tests.support.orders_table import content, orders, reopened, rows, under_newest_schema
from tests.support.view_reader import newest_metadata, shown_rows, table_rows

OPTIONS = {"bucket": "2", "log.system": "none", "write-only": "true", "lease.timeout": "5 s"}
PLACE = "metadata.iceberg.storage"
VIEW = {PLACE: "table-location"}
VERSION = "metadata.iceberg.format-version"
ACTS: dict[str, Callable[[DynamicTable], object]] = {
    "upsert and delete": lambda table: table.append(rows("+U a 1 12", "-D a 2 20", "+I b 4 40")),
    "overwrite": lambda table: table.overwrite(rows("+I a 6 60"), partition={"dt": "a"}),
    "compact": lambda table: table.compact(),
    "expire": lambda table: table.maintenance.expire_snapshots(retain_last=1),
    "roll back": lambda table: table.rollback_to(snapshot_id=1),
    "tag": lambda table: table.tags.create("kept", 2),
}

SUMS = {"merge-engine": "aggregation", "fields.price.aggregate-function": "sum"}
"""Of a table whose rows are combined while they are read, so that its view waits for compactions."""
ACTS_ON_SUMS: dict[str, Callable[[DynamicTable], object]] = {
    "add": lambda table: table.append(rows("+I a 1 12", "+I b 4 40")),
    "compact": lambda table: table.compact(full=True),
    "expire": lambda table: table.maintenance.expire_snapshots(retain_last=1),
    "expire after a compaction": lambda table: (
        table.compact(full=True),
        table.maintenance.expire_snapshots(retain_last=1),
    ),
}


def sums() -> DynamicTable:
    """Return a table in memory whose view shows the first of its three snapshots."""
    table = orders(None, **OPTIONS, **VIEW, **SUMS)
    table.append(rows("+I a 1 10", "+I a 2 20", "+I b 3 30"))
    table.append(rows("+I a 1 1", "+I a 5 50"))
    table.append(rows("+I b 3 1", "+I a 5 5"))
    assert table.inspect.health().view_snapshot_id == 1
    return table


def check_sums(table: DynamicTable) -> None:
    """Compare each snapshot that the view shows, complete an expiry, and catch up by a compaction."""
    check_shown_sums(table)
    table.maintenance.expire_snapshots(retain_last=2)
    check_shown_sums(table)
    table.append(rows("+I b 9 90"))
    table.compact(full=True)
    check_shown_sums(table)
    assert table.inspect.health().view_snapshot_id == table.inspect.latest_snapshot_id()


def check_shown_sums(table: DynamicTable) -> None:
    """Compare the snapshots that the view shows: 1 may have expired, and the view then still shows its files."""
    files = table.environment.file_io
    metadata = newest_metadata(files, f"{table.location}/metadata")
    tags = {tag.snapshot.id: tag.name for tag in table.tags.list()}
    assert metadata["current-snapshot-id"] in {each["snapshot-id"] for each in metadata["snapshots"]}
    for each in metadata["snapshots"]:
        number = each["snapshot-id"]
        if number == 1:
            expected = rows("+I a 1 10", "+I a 2 20", "+I b 3 30").drop_columns("_row_kind")
        elif number in tags:
            expected = table.to_arrow(tag=tags[number])
        else:
            expected = table.to_arrow(snapshot_id=number)
        assert shown_rows(files, metadata, number) == table_rows(expected), number


def a_table(version: str = "3") -> DynamicTable:
    """Return a table with three snapshots, in memory, with hidden rows in its view."""
    table = orders(None, **OPTIONS, **VIEW, **{VERSION: version})
    table.append(rows("+I a 1 10", "+I a 2 20", "+I b 3 30"))
    table.append(rows("+U a 1 11", "+I a 5 50"))
    table.append(rows("+U b 3 31", "-D a 5 50"))
    return table


def check_shown(table: DynamicTable) -> int:
    """Compare each snapshot that the view shows with the table's; return the newest one."""
    files, directory = table.environment.file_io, f"{table.location}/metadata"
    metadata = newest_metadata(files, directory)
    newest = table.inspect.latest_snapshot_id() or 0
    earliest = table.context.file_store.snapshots.earliest_id() or 1
    ids = [each["snapshot-id"] for each in metadata["snapshots"]]
    assert max(ids) <= newest
    assert metadata["current-snapshot-id"] == max(ids)
    for number in ids:
        if number >= earliest:
            assert shown_rows(files, metadata, number) == table_rows(table.to_arrow(snapshot_id=number)), number
    return max(ids)


def check_caught_up(table: DynamicTable, former: int) -> None:
    """Commit once more, and check that the view shows this snapshot, and those before it that had been missing."""
    table.append(rows("+I b 9 90"))
    metadata = newest_metadata(table.environment.file_io, f"{table.location}/metadata")
    newest = table.inspect.latest_snapshot_id() or 0
    assert check_shown(table) == newest
    ids = {each["snapshot-id"] for each in metadata["snapshots"]}
    earliest = table.context.file_store.snapshots.earliest_id() or 1
    assert set(range(max(former, earliest), newest + 1)) <= ids
    assert table.inspect.health().view_lag == 0


def crashes_of(act: Callable[[DynamicTable], object], table: DynamicTable) -> list[tuple[str, DynamicTable]]:
    """Return what a crash at each change of the files by an act leaves of a table, with the place of the crash."""
    files = table.environment.file_io
    assert isinstance(files, MemoryFileIO)
    crashed: list[tuple[str, DynamicTable]] = []
    storage = CrashPoints(
        files,
        state=lambda: files_in(files),
        changed=lambda at: crashed.append((f"{at} {storage.calls[-1]}", copy_of_table(table))),
    )
    act(reopened_in(storage, table, names="mortal"))
    assert len(crashed) > 1
    return crashed


KEPT = (("upsert and delete", "3"), ("upsert and delete", "2"), ("compact", "2"), ("expire", "3"))


@pytest.mark.parametrize("case", thinned(product(ACTS, ("3", "2")), keep=lambda case: case in KEPT))
def test_after_a_crash_the_view_shows_a_snapshot_and_the_next_commit_catches_up(case: tuple[str, str]) -> None:
    name, version = case
    for crash, left in crashes_of(ACTS[name], a_table(version)):
        with named(crash):
            shown = check_shown(left)
            check_caught_up(left, shown)


@pytest.mark.parametrize("versions", thinned([("3", "2"), ("2", "3")]))
def test_after_a_crash_of_a_change_of_its_version_the_next_commit_begins_the_view_again(
    versions: tuple[str, str],
) -> None:
    before, after = versions
    for crash, left in crashes_of(lambda table: table.alter(SetOption(VERSION, after)), a_table(before)):
        with named(crash):
            assert check_shown(left) == 3
            there = under_newest_schema(left)
            there.append(rows("+I b 9 90"))
            assert check_shown(there) == 4
            metadata = newest_metadata(there.environment.file_io, f"{there.location}/metadata")
            assert str(metadata["format-version"]) == there.schema.options[VERSION]


ALTERS: dict[str, tuple[Mapping[str, str], Callable[[DynamicTable], object]]] = {
    "switched on": ({}, lambda table: table.alter(SetOption(PLACE, "table-location"))),
    "elsewhere": (VIEW, lambda table: table.alter(SetOption(PLACE, "hadoop-catalog"))),
    "another version": (VIEW, lambda table: table.alter(SetOption(VERSION, "2"))),
    "another column": (VIEW, lambda table: table.alter(AddColumn("note", "STRING"))),
}


@pytest.mark.parametrize("is_empty", [False, True])
@pytest.mark.parametrize("change", ALTERS)
def test_after_a_crash_of_an_alter_the_health_says_whether_the_view_is_as_asked(change: str, *, is_empty: bool) -> None:
    options, alter = ALTERS[change]
    table = orders(None, **OPTIONS, **options)
    if not is_empty:
        table.append(rows("+I a 1 10"))
        table.append(rows("+U a 1 11"))
    told = []

    for crash, left in crashes_of(alter, table):
        there = under_newest_schema(left)
        if there.context.iceberg_view is None:
            continue
        with named(crash):
            told.append(is_well(there))
            assert told[-1] == is_as_asked(there)
            there.maintenance.publish_iceberg()
            assert is_well(there)
            assert is_as_asked(there)

    assert set(told) == {True, False}


def is_well(table: DynamicTable) -> bool:
    """Return whether the health finds nothing wrong with the view."""
    health = table.inspect.health()
    return not health.view_lag and health.view_problem is None


def is_as_asked(table: DynamicTable) -> bool:
    """Return whether a reader finds the newest rows and columns, in the version and at the place of the options."""
    try:
        metadata = newest_metadata(table.environment.file_io, view_of(table).directory.directory)
    except NotFoundError:
        return False
    (schema,) = (each for each in metadata["schemas"] if each["schema-id"] == metadata["current-schema-id"])
    newest = table.inspect.latest_snapshot_id()
    return (
        metadata["current-snapshot-id"] == (-1 if newest is None else newest)
        and metadata["format-version"] == int(table.schema.options.get(VERSION, "3"))
        and [each["name"] for each in schema["fields"]] == [each.name for each in table.schema.fields]
    )


HINTS = ("version-hint.text", "registered-hint.text", "waiting-hint.text")


@pytest.mark.parametrize("hint", HINTS)
@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"9" * 5000, b"7", b"-1 x", b"[]"])
def test_a_damaged_hint_stops_neither_the_health_nor_a_commit(hint: str, content: bytes) -> None:
    table = sums()
    table.environment.file_io.replace(f"{table.location}/metadata/{hint}", content)

    there = reopened(table)

    health = there.inspect.health()
    assert (health.view_snapshot_id, health.view_problem is None) == (1, hint != HINTS[0])
    there.compact(full=True)
    check_shown_sums(there)
    assert there.inspect.health().view_snapshot_id == there.inspect.latest_snapshot_id()
    assert is_well(there)


def test_a_view_that_cannot_be_read_takes_nothing_from_the_other_figures() -> None:
    table = a_table()
    well = reopened(table).inspect.health()
    storage = FaultyFileIO(table.environment.file_io, Fault(FaultKind.FAIL, path="/metadata/"))

    there = reopened_in(storage, table, names="reader")
    health = there.inspect.health()

    assert (health.file_count, health.view_lag) == (well.file_count, None)
    assert health.view_problem is not None
    assert health.view_problem.startswith("its state is unknown: ")
    assert there.inspect.health() == well


@pytest.mark.parametrize("name", thinned(ACTS_ON_SUMS, keep=lambda name: name in ("compact", "expire")))
def test_after_a_crash_a_view_that_waits_for_compactions_shows_a_snapshot(name: str) -> None:
    for crash, left in crashes_of(ACTS_ON_SUMS[name], sums()):
        with named(crash):
            check_sums(left)


@pytest.mark.deep
@pytest.mark.parametrize(("first", "second"), [("expire", "compact"), ("compact", "expire")])
def test_an_expiry_and_a_compaction_at_once_leave_the_view_at_a_snapshot_that_is_there(first: str, second: str) -> None:
    for at in range(1, 200):
        table = sums()
        other = reopened(table)
        storage = MeetingFiles(table.environment.file_io, at, partial(ACTS_ON_SUMS[second], other), place="")
        with named(f"{second} at I/O {at} of {first}"):
            with suppress(SnapshotExpiredError):  # of a compaction that is not committed
                ACTS_ON_SUMS[first](reopened_in(storage, table, names="first"))
            check_sums(reopened(table))
        if not storage.has_met:
            return
    raise AssertionError


@pytest.mark.parametrize("kind", thinned([FaultKind.LOSE_ANSWER, FaultKind.FAIL, FaultKind.ANSWER_503]))
def test_a_view_that_cannot_be_written_fails_no_commit(kind: FaultKind, caplog: pytest.LogCaptureFixture) -> None:
    table = a_table()
    counted = FaultyFileIO(table.environment.file_io)
    ACTS["upsert and delete"](reopened_in(counted, table, names="mortal"))
    count = sum(operation in WRITES and "/metadata/" in path for operation, path in counted.calls)
    assert count > 3

    for at in range(1, count + 1):
        table = a_table()
        storage = FaultyFileIO(table.environment.file_io, Fault(kind, at=at, operation=WRITES, path="/metadata/"))
        failing = reopened_in(storage, table, names="mortal")
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            snapshot = failing.append(rows("+U a 1 12", "-D a 2 20"))

        assert snapshot is not None
        there = reopened(table)
        assert content(there) == {"a 1 12", "b 3 31"}
        shown = check_shown(there)
        lag = there.inspect.health().view_lag
        assert lag == snapshot.id - shown
        assert not lag or "Iceberg view failed" in caplog.text
        check_caught_up(there, shown)


def test_of_two_writers_at_once_each_snapshot_is_published_once() -> None:
    for at in range(1, 40):
        table = a_table()
        other = reopened(table)
        storage = MeetingFiles(table.environment.file_io, at, partial(other.append, rows("+I b 7 70")))
        with named(f"a meeting at I/O {at} of the view"):
            reopened_in(storage, table, names="first").append(rows("+U a 1 13"))
            there = reopened(table)
            if storage.has_met:
                assert there.inspect.latest_snapshot_id() == 5
            assert check_shown(there) == there.inspect.latest_snapshot_id()
            check_caught_up(there, 4)
            assert there.context.file_store.orphans.remove(modified_until_ms=2**60, dry_run=True).paths == ()
        if not storage.has_met:
            return
    raise AssertionError


class MeetingFiles(FaultyFileIO):
    """Storage whose user meets another writer before the ``at``-th I/O on files of ``place``, by default the view."""

    def __init__(self, delegate: FileIO, at: int, meet: Callable[[], object], *, place: str = "/metadata") -> None:
        super().__init__(delegate)
        self._place = place
        self._left = at
        self._meet = meet
        self.has_met = False

    def _struck(self, operation: str, path: str) -> FaultKind | None:
        struck = super()._struck(operation, path)
        if self._place in path and not self.has_met:
            self._left -= 1
            if not self._left:
                self.has_met = True
                self._meet()
        return struck
