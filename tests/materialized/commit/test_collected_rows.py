"""Rows of this process as one commit: repeated, refused, or without rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from storage_lib import InvalidInputError, MemoryCatalog
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.materialized.commit.collected_rows import commit_collected
from storage_lib.table.protocol.source_offsets import SourceRange

if TYPE_CHECKING:
    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.table.dynamic_table import DynamicTable


@pytest.fixture(params=["log", "no log"])
def table(request: pytest.FixtureRequest) -> DynamicTable:
    options = {} if request.param == "log" else {"log.system": "none"}
    made = MemoryCatalog().create_table("shop.t", {"id": "INT", "v": "STRING"}, primary_key=["id"], options=options)
    made.append([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
    return made


def written(
    table: DynamicTable, rows: list[tuple[int, str, str]], sources: list[SourceRange], identifier: int = 7
) -> Snapshot | None:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    given = pa.table([*map(pa.array, columns[:2]), pa.array(columns[2], pa.string())], names=["id", "v", "_row_kind"])
    return commit_collected(
        given,
        table,
        lambda: table.new_write().begin(commit_user="refresh", based_on=None, needs_lease=True),
        identifier,
        adds_up=True,
        sources=sources,
    )


def rows_of(table: DynamicTable) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


def test_added_and_removed_rows_are_one_commit_and_its_repetition_is_that_commit(table: DynamicTable) -> None:
    changes = [(1, "a", "-D"), (1, "z", "+I"), (3, "c", "+I")]
    first = written(table, changes, [])

    assert first is not None
    assert rows_of(table) == [(1, "z"), (2, "b"), (3, "c")]
    again = written(table, changes, [])
    assert again == first
    assert table.inspect.latest_snapshot_id() == first.id
    assert rows_of(table) == [(1, "z"), (2, "b"), (3, "c")]


def test_rows_that_share_a_key_are_refused_and_the_next_writer_does_not_wait(table: DynamicTable) -> None:
    with pytest.raises(InvalidInputError, match="two rows") as refused:
        written(table, [(5, "x", "+I"), (5, "y", "+I")], [])

    assert type(refused.value) is InvalidInputError
    assert table.inspect.lease_holder() is None
    assert rows_of(table) == [(1, "a"), (2, "b")]
    table.append([{"id": 5, "v": "x"}])
    assert rows_of(table)[-1] == (5, "x")


def test_without_rows_only_positions_are_committed(table: DynamicTable) -> None:
    moved = SourceRange(source="s@main", start=None, end=LogOffsets({0: 4}, "m"))
    newest = table.inspect.latest_snapshot_id()

    assert written(table, [], []) is None
    assert table.inspect.latest_snapshot_id() == newest
    assert written(table, [], [moved]) is not None
    assert table.inspect.source_positions(table.inspect.latest_snapshot_id() or 0).of("s@main") == moved.end
