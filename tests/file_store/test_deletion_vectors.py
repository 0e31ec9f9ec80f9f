"""Rows that another engine marked as deleted do not reappear, after a read, a compaction or a lost race."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from storage_lib import open_catalog
from storage_lib.errors import CommitConflictError, CorruptFileError
from storage_lib.file_store.data_file.deletion_vector import read_deletion_vector
from storage_lib.file_store.read import FileStoreRead
from storage_lib.io.environment import system_environment
from storage_lib.schema.filter.column_reference import col
from tests.support.append_tables import append_schema
from tests.support.counting_reader import CountingReader
from tests.support.deletion_vectors import encoded_vector, mark_deleted, move_up
from tests.support.fake_environment import fake_environment
from tests.support.other_readers import needs_pypaimon, read_with_pypaimon, read_with_rust
from tests.support.stored_table import StoredTable, orders_schema

OPTIONS = {"bucket": "1", "deletion-vectors.enabled": "true", "num-levels": "6"}
OF_SPARK = bytes.fromhex("01 00000016 5e43f2d0 3a3000000100000000000000100000000300 c81d3310")
"""Index file written by Paimon's Spark connector: position 3."""


def _table(**options: str) -> StoredTable:
    return StoredTable(orders_schema({**OPTIONS, **options}), fake_environment())


def _names(table: StoredTable) -> list[str]:
    """Return names of the live files, oldest first."""
    plan = table.store.scan.plan(table.store.snapshots.latest())
    return [entry.file.file_name for entry in sorted(plan.entries, key=lambda entry: entry.file.min_sequence_number)]


def _compacted(table: StoredTable, count: int = 10) -> str:
    table.append([("a", key, "old") for key in range(count)])
    table.compact()
    (name,) = _names(table)
    return name


def test_a_vector_of_spark_is_read() -> None:
    assert read_deletion_vector(pa.BufferReader(OF_SPARK), 1, "index").tolist() == [3]


@pytest.mark.parametrize("wide", [False, True], ids=["32 bits", "64 bits"])
def test_any_positions_come_back(wide: bool) -> None:  # noqa: FBT001
    random = np.random.default_rng(7)
    positions = [*np.unique(random.integers(0, 300_000, 2000)).tolist(), *range(400_000, 470_000)]
    data = b"\x01" + encoded_vector(positions, wide=wide)

    assert read_deletion_vector(pa.BufferReader(data), 1, "index").tolist() == positions


@pytest.mark.parametrize("broken", [OF_SPARK[:-1], OF_SPARK[:20] + b"\x01" + OF_SPARK[21:], OF_SPARK[:3]])
def test_a_vector_that_is_cut_or_changed_is_not_believed(broken: bytes) -> None:
    with pytest.raises(CorruptFileError, match="at byte 1 of index"):
        read_deletion_vector(pa.BufferReader(broken), 1, "index")


@pytest.mark.parametrize("wide", [False, True], ids=["32 bits", "64 bits"])
def test_marked_rows_are_not_read_whatever_the_columns_and_the_filter(wide: bool) -> None:  # noqa: FBT001
    table = _table()
    mark_deleted(table, {_compacted(table): [0, 3, 9]}, wide=wide)

    assert [row[1] for row in table.rows()] == [1, 2, 4, 5, 6, 7, 8]
    assert table.rows(predicate=col("id") == 3) == []
    assert table.rows(predicate=col("id") == 4, columns=["item"]) == [("old",)]
    assert table.rows(store=table.reopened()) == table.rows()


def test_what_a_vector_marks_is_a_matter_of_the_snapshot() -> None:
    table = _table()
    name = _compacted(table)
    before = table.store.snapshots.latest()
    first = mark_deleted(table, {name: [0]})
    mark_deleted(table, {name: [0, 1]})

    assert [len(table.rows(snapshot)) for snapshot in (before, first, None)] == [10, 9, 8]


def test_compacted_files_are_read_raw_although_their_keys_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    table = _table()
    old = _compacted(table)
    table.append([("a", 5, "new")])
    (new,) = set(_names(table)) - {old}
    move_up(table, new)
    mark_deleted(table, {old: [5]})
    readers: list[CountingReader] = []
    reader_of = FileStoreRead.reader

    def counted(read: FileStoreRead, partition: bytes, bucket: int) -> CountingReader:
        readers.append(CountingReader(reader_of(read, partition, bucket)))
        return readers[-1]

    monkeypatch.setattr(FileStoreRead, "reader", counted)

    assert table.rows(columns=["item"]) == [("new",)] + [("old",)] * 9
    assert {columns for reader in readers for columns in reader.columns_asked} == {("item",)}
    # A file without matching values may be skipped: it hides no row of another file.
    assert table.rows(predicate=col("item") == "new", columns=["id"]) == [(5,)]


def test_a_compaction_leaves_marked_rows_out_and_their_vectors_with_them() -> None:
    table = _table()
    mark_deleted(table, {_compacted(table): [0, 3]})
    table.append([("a", 1, "new")])

    snapshot = table.compact()

    assert snapshot is not None
    assert snapshot.index_manifest is None
    assert table.files() == ["0/5/8"]
    assert [row[1:] for row in table.rows()][:2] == [(1, "new"), (2, "old")]


def test_vectors_of_files_that_stay_are_carried_forward() -> None:
    table = StoredTable(orders_schema(OPTIONS), fake_environment())
    table.append([("a", key, "old") for key in range(4)])
    table.append([("b", key, "old") for key in range(4)])
    marked = mark_deleted(table, {name: [0, 1] for name in _names(table)})
    assert marked.index_manifest is not None

    appended = table.append([("a", 9, "new")])
    assert appended.index_manifest == marked.index_manifest
    overwritten = table.overwrite([("a", 1, "over")], partition_filter=col("dt") == "a")

    assert overwritten.index_manifest not in (None, marked.index_manifest)
    assert table.rows(store=table.reopened()) == [("a", 1, "over"), ("b", 2, "old"), ("b", 3, "old")]
    dropped = table.overwrite([], partition_filter=col("dt") == "b")
    assert dropped.index_manifest is None
    assert table.rows() == [("a", 1, "over")]


def test_a_compaction_is_dropped_if_more_of_its_rows_were_marked_meanwhile() -> None:
    table = _table()
    name = _compacted(table)
    table.append([("a", 20, "new")])
    messages = table.compaction_messages()
    mark_deleted(table, {name: [0]})

    with pytest.raises(CommitConflictError, match="other rows are marked as deleted"):
        table.commit(messages)

    assert sorted(row[1] for row in table.rows()) == [*range(1, 10), 20]


@pytest.mark.parametrize("wide", [False, True], ids=["32 bits", "64 bits"])
@needs_pypaimon
def test_other_readers_see_the_same_rows(tmp_path: Path, wide: bool) -> None:  # noqa: FBT001
    table = StoredTable(orders_schema(OPTIONS), system_environment(), root=f"{tmp_path}/db.db/t")
    mark_deleted(table, {_compacted(table): [0, 3, 9]}, wide=wide)
    expected = sorted(table.rows())
    assert len(expected) == 7

    assert _told(read_with_rust(tmp_path, "db.t")) == expected
    if not wide:  # pypaimon 2.1.0 does not know the other magic
        assert _told(read_with_pypaimon(tmp_path, "db.t", tmp_path)) == expected


@pytest.mark.parametrize("merge_on_read", ["false", "true"])
@needs_pypaimon
def test_batch_reads_leave_out_what_is_not_compacted_as_other_readers_do_and_streams_do_not(
    tmp_path: Path, merge_on_read: str
) -> None:
    options = {**OPTIONS, "deletion-vectors.merge-on-read": merge_on_read, "partition.legacy-name": "false"}
    stored = StoredTable(orders_schema(options), system_environment(), root=f"{tmp_path}/db.db/t")
    old = _compacted(stored, 3)
    mark_deleted(stored, {old: [0]})
    stored.append([("a", 2, "new")])
    compacted = [("a", 1, "old"), ("a", 2, "old")]
    newest = [("a", 1, "old"), ("a", 2, "new")]

    table = open_catalog(str(tmp_path)).load_table("db.t")

    expected = newest if merge_on_read == "true" else compacted
    assert _told(table.to_arrow()) == expected
    assert _told(read_with_rust(tmp_path, "db.t")) == expected
    batch = table.stream().poll()
    assert batch is not None
    assert _told(batch) == newest


@needs_pypaimon
def test_marked_rows_of_an_append_table_are_left_out_too(tmp_path: Path) -> None:
    schema = append_schema({"deletion-vectors.enabled": "true"})
    table = StoredTable(schema, system_environment(), root=f"{tmp_path}/db.db/t")
    for start in (0, 5):
        table.append([("a", key, "x") for key in range(start, start + 5)])
    first, second = _names(table)
    mark_deleted(table, {first: [1], second: [0, 4]})
    expected = [("a", key, "x") for key in (0, 2, 3, 4, 6, 7, 8)]

    assert sorted(table.rows()) == expected
    assert table.rows(predicate=col("id") == 9) == []
    assert _told(read_with_rust(tmp_path, "db.t")) == expected
    assert _told(read_with_pypaimon(tmp_path, "db.t", tmp_path)) == expected
    snapshot = table.compact()

    assert snapshot is not None
    assert snapshot.index_manifest is None
    assert sorted(table.rows()) == expected
    assert table.files() == ["0/0/7"]


def _told(rows: pa.Table) -> list[tuple[object, ...]]:
    return sorted((row["dt"], row["id"], row["item"]) for row in rows.to_pylist())
