"""A rollback that changes deletion vectors alone, and no file, changes rows like any other one."""

from __future__ import annotations

import pyarrow as pa
import pytest

from storage_lib import CommitConflictError, DynamicTable, InvalidInputError, UntrackedCommitError
from tests.support.orders_table import orders, rows

VECTORS = {"log.system": "none", "deletion-vectors.enabled": "true", "compaction.level0-file-num-trigger": "100"}


@pytest.fixture
def marked() -> DynamicTable:
    """Create a table whose newest snapshot has the files of snapshot 2, and marks one of two rows in them."""
    table = orders(None, **VECTORS)
    table.append(rows("+I a 1 10", "+I a 2 20", "+I b 3 30", "+I b 4 40"))
    table.compact(full=True)
    table.append(rows("-D a 1 10"))
    table.compact()
    assert _files(table, 2) == _files(table, 4)
    return table


def _files(table: DynamicTable, snapshot_id: int) -> set[str]:
    store = table.context.file_store
    entries = store.scan.entries(store.snapshots.load(snapshot_id))
    return {entry.file.file_name for entry in entries}


def _ids(table: DynamicTable) -> list[int]:
    return sorted(table.to_arrow().column("id").to_pylist())


@pytest.mark.parametrize("mode", ["net", "every"])
def test_changes_between_snapshots_have_the_row_that_is_back(marked: DynamicTable, mode: str) -> None:
    marked.rollback_to(snapshot_id=2, change_tracking=False)

    found = marked.changes(start_snapshot_id=4, end_snapshot_id=5, mode=mode).read_all().to_pylist()

    assert [(row["_row_kind"], row["id"]) for row in found] == [("+I", 1)]
    assert _ids(marked) == [1, 2, 3, 4]


def test_a_stream_is_told_that_rows_changed(marked: DynamicTable) -> None:
    stream = marked.stream(on_untracked="fail")
    position = stream.initial_position()
    position = stream.latest_position(position)
    marked.rollback_to(snapshot_id=2, change_tracking=False)

    with pytest.raises(UntrackedCommitError, match=r"snapshot 5.*dt=a"):
        stream.latest_position(position)


def test_the_list_of_commits_names_the_partition(marked: DynamicTable) -> None:
    marked.rollback_to(snapshot_id=2, change_tracking=False)

    assert [each.partitions for each in marked.inspect.commits() if each.snapshot_id == 5] == [({"dt": "a"},)]


def test_a_branch_from_before_it_is_not_published(marked: DynamicTable) -> None:
    marked.branches.create("b")
    marked.rollback_to(snapshot_id=2, change_tracking=False)

    with pytest.raises(InvalidInputError, match="has changed since branch 'b' was made"):
        marked.branches.fast_forward("b", change_tracking=False)


@pytest.mark.parametrize("day", ["a", "b"])
def test_an_update_that_began_before_it_is_refused_in_the_same_partition(marked: DynamicTable, day: str) -> None:
    builder = marked.new_write()
    begun = builder.begin(commit_user="writer", based_on=4)
    changed = {"a": "+U a 2 21", "b": "+U b 3 31"}[day]
    with builder.open_task(begun) as write:
        write.write(_batch(rows(changed)))
        written = write.prepare_commit()
    marked.rollback_to(snapshot_id=2, change_tracking=False)

    if day == "a":
        with pytest.raises(CommitConflictError, match="snapshot 5 replaced rows"):
            builder.commit(begun, [written], 1)
    else:
        assert builder.commit(begun, [written], 1) is not None


def _batch(table: pa.Table) -> pa.RecordBatch:
    return table.combine_chunks().to_batches()[0]
