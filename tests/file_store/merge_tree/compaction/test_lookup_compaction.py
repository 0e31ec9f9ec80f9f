"""Compactions of tables with complete rows above level 0: their lookups, and commits that they must not overtake."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage_lib.errors import CommitConflictError
from storage_lib.file_store.store import FileStore
from storage_lib.io.environment import system_environment
from storage_lib.io.local.local_file_io import LocalFileIO
from storage_lib.schema.table_schema import new_table_schema
from storage_lib.schema.types.row_kind import RowKind
from storage_lib.schema.types.type_spelling import parse_type
from storage_lib.table.commit.table_overwrite import deletions_of
from tests.support.stored_table import StoredTable

SUMS = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}


def made(home: Path, options: dict[str, str]) -> StoredTable:
    columns = [("k", parse_type("INT NOT NULL")), ("n", parse_type("INT"))]
    schema = new_table_schema(
        columns, primary_keys=["k"], partition_keys=[], options={"bucket": "1", **options}, time_millis=0
    )
    return StoredTable(schema, system_environment(LocalFileIO(durable=False)), f"{home}/db.db/t")


def levels(store: FileStore) -> list[int]:
    return sorted(entry.file.level for entry in store.scan.entries(store.snapshots.latest()))


@pytest.mark.parametrize("options", [{"force-lookup": "true"}, {"changelog-producer": "lookup"}])
def test_a_row_that_leaves_level_0_holds_what_lies_deeper(tmp_path: Path, options: dict[str, str]) -> None:
    table = made(tmp_path, {**SUMS, **options})
    table.append([(key, 800) for key in range(50)])
    table.compact(full=False)
    table.append([(1, 1)])
    table.compact(full=False)

    assert levels(table.store) == [4, 5]
    assert sorted(table.rows())[1] == (1, 801)
    table.append([(1, 10), (99, 1)])
    assert sorted(table.rows())[1] == (1, 811)
    table.compact()
    assert (1, 811) in table.rows()
    assert (99, 1) in table.rows()


def test_a_deletion_goes_on_hiding_what_lies_deeper(tmp_path: Path) -> None:
    options = {**SUMS, "changelog-producer": "lookup", "aggregation.remove-record-on-delete": "true"}
    table = made(tmp_path, options)
    table.append([(key, 800) for key in range(50)])
    table.compact(full=False)
    table.append([(1, None)], [RowKind.DELETE])
    table.compact(full=False)

    assert levels(table.store) == [4, 5]
    assert 1 not in [key for key, _ in table.rows()]
    table.append([(1, 5)])
    table.compact(full=False)
    assert sorted(table.rows())[1] == (1, 5)


def test_a_compaction_is_dropped_if_what_it_looked_up_was_replaced(tmp_path: Path) -> None:
    table = made(tmp_path, {**SUMS, "changelog-producer": "lookup"})
    table.append([(key, 800) for key in range(50)])
    table.compact(full=False)
    replacements = table.messages([(1, 7)], overwrite=True)
    live = table.store.scan.entries(table.store.snapshots.latest())
    table.append([(1, 1)])
    late = table.compaction_messages(full=False)
    # A tracked overwrite removes the rows that existed when it began, and keeps rows that a stream has added since.
    table.commit([*deletions_of(live), *replacements], is_overwrite=True)

    with pytest.raises(CommitConflictError, match="merged its rows with those of"):
        table.commit(late)
    assert table.rows() == [(1, 8)]


def test_a_change_is_told_once_whatever_moves_without_being_rewritten(tmp_path: Path) -> None:
    table = made(tmp_path, {"changelog-producer": "lookup", "target-file-size": "1 b"})
    table.append([(1, 1)])
    first = table.compact(full=False)
    table.append([(2, 2)])
    second = table.compact(full=False)
    table.compact()

    assert first is not None
    assert second is not None
    assert (first.changelog_record_count, second.changelog_record_count) == (1, 1)
    latest = table.store.snapshots.latest()
    assert latest is not None
    assert latest.changelog_manifest_list is None
