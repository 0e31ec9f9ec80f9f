"""A restore restores files unchanged, or as copies under other names, which a failed commit deletes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from storage_lib.errors import CommitOutcomeUnknownError, CorruptFileError, StorageError, UnavailableError
from storage_lib.file_store.commit_message import CommitMessage
from storage_lib.file_store.manifest.manifest_entry import FileKind, ManifestEntry
from storage_lib.file_store.merge_tree.increment import Increment
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.io.environment import Environment
from tests.support.deletion_vectors import mark_deleted, move_up
from tests.support.every_file import every_file
from tests.support.fake_environment import fake_environment
from tests.support.faulty_file_io import Fault, FaultKind, FaultyFileIO
from tests.support.storages import ALL, open_storage
from tests.support.stored_table import StoredTable, committable_of, orders_schema

PINNED = {"bucket": "1", "snapshot.num-retained.min": "2147483647"}
ROWS = [("a", 1, "x"), ("a", 2, "y")]


def table_in(environment: Environment, root: str = "/warehouse/db.db/t", **options: str) -> StoredTable:
    return StoredTable(orders_schema({**PINNED, **options}), environment, root)


@pytest.fixture
def table() -> StoredTable:
    return table_in(fake_environment())


def entries(table: StoredTable, snapshot: Snapshot | None = None) -> list[ManifestEntry]:
    store = table.reopened()
    return list(store.scan.plan(snapshot or store.snapshots.latest()).entries)


def restore(table: StoredTable, snapshot_id: int) -> Snapshot | None:
    target = table.store.snapshots.load(snapshot_id)
    return table.store.commit.restore(committable_of([], user="restorer", identifier=1), target)


def data_files(table: StoredTable) -> set[str]:
    paths = every_file(table.environment.file_io, table.root)
    return {path.rpartition("/")[2] for path in paths if "/bucket-" in path}


def change(
    table: StoredTable, before: Sequence[ManifestEntry], after: Sequence[ManifestEntry], *, others: bool = False
) -> None:
    """Commit a compaction of one bucket that replaces files ``before`` with ``after``."""
    first = next(iter([*before, *after]))
    increment = Increment(
        compact_before=tuple(entry.file for entry in before), compact_after=tuple(entry.file for entry in after)
    )
    message = CommitMessage(
        partition=first.partition, bucket=first.bucket, bucket_count=first.total_buckets, increment=increment
    )
    table.commit([message], user="another engine" if others else "tests")


def moved(entry: ManifestEntry, level: int) -> ManifestEntry:
    return replace(entry, file=replace(entry.file, level=level))


def test_a_file_that_moves_down_again_is_a_copy_and_all_others_come_back_as_they_were(table: StoredTable) -> None:
    table.append(ROWS)
    table.append([("a", 2, "z"), ("b", 1, "w")])
    first, second, other = sorted(entries(table), key=lambda entry: (entry.file.min_sequence_number, entry.partition))
    if first.partition != second.partition:
        second, other = other, second
    move_up(table, first.file.file_name)
    table.store.commit.overwrite(committable_of([]), partitions=[other.partition])

    restored = restore(table, 2)

    names = {entry.file.file_name for entry in entries(table)}
    assert {second.file.file_name, other.file.file_name} < names
    assert first.file.file_name not in names
    assert table.rows(restored, store=table.reopened()) == [("a", 1, "x"), ("a", 2, "z"), ("b", 1, "w")]
    (copy,) = [entry for entry in entries(table) if entry.file.file_name not in {*_names(second, other)}]
    assert replace(copy.file, file_name=first.file.file_name) == first.file


def _names(*of: ManifestEntry) -> list[str]:
    return [entry.file.file_name for entry in of]


def test_a_file_that_moves_up_comes_back_under_its_name(table: StoredTable) -> None:
    table.append(ROWS)
    (entry,) = entries(table)
    move_up(table, entry.file.file_name)
    restore(table, 1)
    (copy,) = entries(table)
    restore_again = table.store.commit.restore(
        committable_of([], user="b", identifier=1), table.store.snapshots.load(2)
    )
    assert restore_again is not None
    assert _names(*entries(table)) == [entry.file.file_name]

    # The same name at a lower level, as an earlier release left it.
    change(table, entries(table), [entry])
    table.store.commit.restore(committable_of([], user="c", identifier=1), table.store.snapshots.load(2))

    assert _names(*entries(table)) == [entry.file.file_name]
    assert data_files(table) == {entry.file.file_name, copy.file.file_name}
    assert table.rows(store=table.reopened()) == ROWS


def test_a_file_that_got_another_index_is_a_copy(table: StoredTable) -> None:
    table.append(ROWS)
    (entry,) = entries(table)
    change(table, [entry], [replace(entry, file=replace(entry.file, embedded_file_index=b"index"))], others=True)

    restore(table, 1)

    (copy,) = entries(table)
    assert copy.file.file_name != entry.file.file_name
    assert copy.file.embedded_file_index == entry.file.embedded_file_index


def test_a_copy_has_copies_of_what_belongs_to_it(table: StoredTable) -> None:
    files = table.environment.file_io
    table.append(ROWS)
    (entry,) = entries(table)
    stem = entry.file.file_name.removesuffix(".parquet")
    elsewhere = "/elsewhere/" + entry.file.file_name
    files.write_bytes(elsewhere, files.read_bytes(table.store.path_of(entry)))
    extra = (f"{entry.file.file_name}.index", f"{stem}-1.index", "other.index")
    for name in extra:
        files.write_bytes(f"/elsewhere/{name}", name.encode())
    outside = replace(entry, file=replace(entry.file, external_path=f"file:{elsewhere}", extra_files=extra))
    change(table, [entry], [outside], others=True)
    change(table, [outside], [moved(outside, 4)], others=True)

    restore(table, 2)

    (copy,) = entries(table)
    new = copy.file.file_name.removesuffix(".parquet")
    assert copy.file.external_path is None
    assert copy.file.extra_files == (f"{new}.parquet.index", f"{new}-1.index", f"{new}.other.index")
    bucket = table.store.path_of(copy).rpartition("/")[0]
    assert [files.read_bytes(f"{bucket}/{name}").decode() for name in copy.file.extra_files] == list(extra)
    assert table.rows(store=table.reopened()) == ROWS


def test_a_copy_lies_where_new_files_of_the_table_do() -> None:
    options = {"data-file.external-paths": "file:/elsewhere", "data-file.external-paths.strategy": "round-robin"}
    table = table_in(fake_environment(), **options)
    table.append(ROWS)
    (entry,) = entries(table)
    move_up(table, entry.file.file_name)

    restore(table, 1)

    (copy,) = entries(table)
    assert copy.file.external_path == f"file:/elsewhere/dt=a/bucket-0/{copy.file.file_name}"
    assert copy.file.file_name != entry.file.file_name
    assert table.rows(store=table.reopened()) == ROWS


def test_deletion_vectors_are_of_the_copies(table: StoredTable) -> None:
    table.append(ROWS)
    (entry,) = entries(table)
    move_up(table, entry.file.file_name)
    change(table, entries(table), [moved(entry, 3)], others=True)
    mark_deleted(table, {entry.file.file_name: [0]})
    (marked,) = entries(table)
    change(table, [marked], [moved(marked, 4)], others=True)
    mark_deleted(table, {entry.file.file_name: [1]})

    restored = restore(table, 4)

    assert table.rows(restored, store=table.reopened()) == [("a", 2, "y")]
    assert _names(*entries(table)) != [entry.file.file_name]


def test_rows_that_were_marked_as_deleted_since_come_back_though_no_file_changed(table: StoredTable) -> None:
    table.append(ROWS)
    (entry,) = entries(table)
    move_up(table, entry.file.file_name)
    mark_deleted(table, {entry.file.file_name: [0]})

    assert restore(table, 2) is not None
    assert table.rows(store=table.reopened()) == ROWS
    assert restore(table, 4) is None


def test_where_other_engines_expire_snapshots_all_that_comes_back_is_a_copy() -> None:
    table = table_in(fake_environment(), **{"snapshot.num-retained.min": "10"})
    table.append(ROWS)
    (entry,) = entries(table)
    move_up(table, entry.file.file_name)
    mark_deleted(table, {entry.file.file_name: [0]})
    marked = table.store.snapshots.latest()
    assert marked is not None
    table.overwrite([("a", 7, "n")])
    indexes = f"{table.root}/index"
    before = {each.name for each in table.environment.file_io.list_directory(indexes)}

    restored = restore(table, marked.id)

    assert restored is not None
    assert restored.index_manifest not in (None, marked.index_manifest)
    assert _names(*entries(table)) != [entry.file.file_name]
    # Delete every file that only earlier snapshots refer to.
    for old in (*before, *data_files(table)):
        if old not in _names(*entries(table)):
            table.environment.file_io.delete(f"{indexes}/{old}")
            table.environment.file_io.delete(f"{table.store.path_of(entry).rpartition('/')[0]}/{old}")
    table.environment.file_io.delete(f"{table.root}/manifest/{marked.index_manifest}")
    assert table.rows(restored, store=table.reopened()) == [("a", 2, "y")]


def test_a_copy_that_a_lost_attempt_needed_is_deleted(table: StoredTable) -> None:
    table.append(ROWS)
    (entry,) = entries(table)
    move_up(table, entry.file.file_name)

    def somebody_drops_everything_first(latest: Snapshot | None) -> None:
        if latest is not None and latest.id == 2:
            table.reopened().commit.overwrite(committable_of([]))

    table.store.commit.restore(
        committable_of([], user="restorer", identifier=1),
        table.store.snapshots.load(1),
        guard=somebody_drops_everything_first,
    )

    assert data_files(table) == {entry.file.file_name}
    assert table.rows(store=table.reopened()) == ROWS


def test_a_damaged_file_is_not_copied(table: StoredTable) -> None:
    table.append(ROWS)
    (entry,) = entries(table)
    move_up(table, entry.file.file_name)
    path = table.store.path_of(entry)
    data = table.environment.file_io.read_bytes(path)
    table.environment.file_io.replace(path, data[:50] + bytes([data[50] ^ 1]) + data[51:])

    with pytest.raises(CorruptFileError, match=entry.file.file_name):
        restore(table, 1)
    assert data_files(table) == {entry.file.file_name}
    latest = table.store.snapshots.latest()
    assert latest is not None
    assert latest.id == 2


def prepared(environment: Environment, options: Mapping[str, str]) -> StoredTable:
    """Create two files in each of two partitions, moved up, and one more that replaced those of one partition."""
    table = table_in(environment, **options)
    table.append([("a", 1, "x"), ("b", 1, "x")])
    for entry in entries(table):
        move_up(table, entry.file.file_name)
    mark_deleted(table, {entries(table)[0].file.file_name: [0]})
    return table


@pytest.mark.parametrize("kind", [FaultKind.FAIL, FaultKind.ANSWER_503, FaultKind.LOSE_ANSWER, FaultKind.DELAY])
@pytest.mark.parametrize("options", [{}, {"snapshot.num-retained.min": "10"}], ids=["pinned", "others expire"])
def test_whatever_fails_copies_stay_if_and_only_if_a_snapshot_may_name_them(
    kind: FaultKind, options: Mapping[str, str]
) -> None:
    plain = prepared(fake_environment(), options)
    counted = FaultyFileIO(plain.environment.file_io)
    restore(_with_files(plain, counted), 1)
    assert len(counted.calls) > 10
    for at in range(1, len(counted.calls) + 1):
        table = prepared(fake_environment(), options)
        before = data_files(table)
        faulty = FaultyFileIO(table.environment.file_io, Fault(kind, at=at))
        error: StorageError | None = None
        try:
            restore(_with_files(table, faulty), 1)
        except StorageError as raised:
            error = raised
        when = f"{kind.name} at {at} of {len(counted.calls)}: {faulty.calls[at - 1]}: {error!r}"
        fresh = table.reopened()
        latest = fresh.snapshots.latest()
        assert latest is not None
        shown = table.rows(store=fresh)
        if latest.commit_user == "restorer":
            assert shown == [("a", 1, "x"), ("b", 1, "x")], when
            assert error is None or isinstance(error, CommitOutcomeUnknownError), when
            assert data_files(table) == before | set(_names(*entries(table))), when
        else:
            assert error is not None, when
            assert len(shown) == 1, when
            is_known = isinstance(error, UnavailableError) and not isinstance(error, CommitOutcomeUnknownError)
            if is_known and kind is FaultKind.FAIL:
                assert data_files(table) == before, when


def _with_files(table: StoredTable, files: FaultyFileIO) -> StoredTable:
    environment = replace(table.environment, file_io=files)
    return StoredTable(table.schema, environment, table.root)


@pytest.mark.parametrize("storage", ALL)
def test_copies_are_made_on_every_storage(storage: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    place = open_storage(storage, request, tmp_path)
    table = table_in(fake_environment(place.files), place.root)
    table.append(ROWS)
    (entry,) = entries(table)
    move_up(table, entry.file.file_name)

    restore(table, 1)

    (copy,) = entries(table)
    assert copy.file.file_name != entry.file.file_name
    assert copy.kind is FileKind.ADD
    assert table.rows(store=table.reopened()) == ROWS
