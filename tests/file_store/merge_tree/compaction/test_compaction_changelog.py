"""The changelog files of compactions, read back: each change once, with the row before it."""

from __future__ import annotations

from typing import Any

import pytest

from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.split import Split
from storage_lib.io.environment import Environment
from storage_lib.schema.table_schema import new_table_schema
from storage_lib.schema.types.row_kind import RowKind
from storage_lib.schema.types.type_spelling import parse_type
from tests.support.fake_environment import fake_environment
from tests.support.stored_table import StoredTable

INSERT, DELETE = RowKind.INSERT, RowKind.DELETE
BEFORE, AFTER = RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER
MANY = [(key, 800) for key in range(50)]
PRODUCERS = pytest.mark.parametrize("producer", ["lookup", "full-compaction"])

Change = tuple[RowKind, tuple[Any, ...]]


def made(producer: str, options: dict[str, str] | None = None, environment: Environment | None = None) -> StoredTable:
    columns = [("k", parse_type("INT NOT NULL")), ("n", parse_type("INT"))]
    options = {"bucket": "1", "changelog-producer": producer, **(options or {})}
    schema = new_table_schema(columns, primary_keys=["k"], partition_keys=[], options=options, time_millis=0)
    return StoredTable(schema, environment or fake_environment())


def changes_of(table: StoredTable, snapshot: Snapshot | None) -> list[Change]:
    """Return the content of the changelog files that a snapshot added."""
    assert snapshot is not None
    if snapshot.changelog_manifest_list is None:
        return []
    found: list[Change] = []
    for entry in table.store.references.entries(snapshot.changelog_manifest_list, strict=True):
        split = Split(snapshot_id=snapshot.id, partition=entry.partition, bucket=entry.bucket, files=(entry.file,))
        for rows, kinds in table.store.read.changes(split):
            changed = (tuple(row.values()) for row in rows.to_pylist())
            found += zip(map(RowKind, kinds.to_pylist()), changed, strict=True)
    return found


def levels(table: StoredTable) -> list[int]:
    return sorted(entry.file.level for entry in table.store.scan.entries(table.store.snapshots.latest()))


@PRODUCERS
def test_a_first_row_is_an_insert_and_a_later_one_an_update_with_the_row_before(producer: str) -> None:
    table = made(producer)
    table.append([(1, 1), (2, 2)])
    first = table.compact()
    table.append([(2, 3), (3, 4)])

    assert changes_of(table, first) == [(INSERT, (1, 1)), (INSERT, (2, 2))]
    assert changes_of(table, table.compact()) == [(BEFORE, (2, 2)), (AFTER, (2, 3)), (INSERT, (3, 4))]


@PRODUCERS
def test_a_deletion_has_the_row_before_and_one_of_a_missing_key_is_no_change(producer: str) -> None:
    table = made(producer)
    table.append([(1, 1)])
    table.compact()
    table.append([(1, 7), (2, 7)], [DELETE, DELETE])

    assert changes_of(table, table.compact()) == [(DELETE, (1, 1))]


def test_a_key_that_was_deleted_is_inserted_although_its_old_row_lies_deeper() -> None:
    table = made("lookup")
    table.append(MANY)
    table.compact(full=False)
    table.append([(1, 800)], [DELETE])
    deletion = table.compact(full=False)
    assert levels(table) == [4, 5]
    table.append([(1, 5)])

    assert changes_of(table, deletion) == [(DELETE, (1, 800))]
    assert changes_of(table, table.compact(full=False)) == [(INSERT, (1, 5))]


def test_changes_of_a_full_compaction_are_relative_to_the_one_before() -> None:
    table = made("full-compaction")
    table.append(MANY)
    table.compact()
    # As other engines do: a compaction into a middle level, which tells no changes.
    other = made("none", {"force-lookup": "true"}, table.environment)
    other.append([(1, 1), (60, 1)])
    other.compact(full=False)
    assert levels(table) == [4, 5]
    table.append([(1, 2)])

    assert changes_of(table, table.compact()) == [(BEFORE, (1, 800)), (AFTER, (1, 2)), (INSERT, (60, 1))]


@PRODUCERS
def test_a_file_that_moves_without_a_rewrite_has_its_changes_told(producer: str) -> None:
    table = made(producer, {"target-file-size": "1 b"})
    table.append([(1, 1)])
    table.compact()
    table.append([(2, 2)])

    assert changes_of(table, table.compact()) == [(INSERT, (2, 2))]


def test_the_first_row_of_a_key_is_told_once() -> None:
    table = made("lookup", {"merge-engine": "first-row"})
    table.append(MANY)
    table.compact(full=False)
    table.append([(1, 1), (60, 1)])

    assert changes_of(table, table.compact(full=False)) == [(INSERT, (60, 1))]
    table.append([(60, 2)])
    assert changes_of(table, table.compact()) == []
