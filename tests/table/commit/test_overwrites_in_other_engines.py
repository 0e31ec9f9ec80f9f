"""Overwrites, drops and rollbacks by this library are visible to Paimon's Java core and its streams at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage_lib.schema.types.row_kind import RowKind
from storage_lib.table.protocol.write_context import OverwriteScope
from tests.support.paimon_core import PaimonCore
from tests.support.shared_table import Row, SharedTable, arrow_of, sorted_rows

ADD = RowKind.INSERT
COLUMNS = {"k": "INT NOT NULL", "day": "STRING NOT NULL", "n": "INT"}
SUM = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
VECTORS = {"deletion-vectors.enabled": "true"}
PRODUCERS = {
    "lookup": {"changelog-producer": "lookup"},
    "input": {"changelog-producer": "input"},
    "full-compaction": {"changelog-producer": "full-compaction"},
    "lookup, sums": {"changelog-producer": "lookup", **SUM},
    "input, sums": {"changelog-producer": "input", **SUM},
    "full-compaction, sums": {"changelog-producer": "full-compaction", **SUM},
    "lookup, vectors": {"changelog-producer": "lookup", **VECTORS},
    "lookup, vectors, sums": {"changelog-producer": "lookup", **VECTORS, **SUM},
    "lookup, first row": {"changelog-producer": "lookup", "merge-engine": "first-row"},
}
SEEN_LATE: dict[str, dict[str, str]] = {
    "vectors": VECTORS,
    "vectors, sums": {**VECTORS, **SUM},
    "first row": {"merge-engine": "first-row"},
}


def days(*rows: tuple[int, str, int]) -> list[tuple[RowKind, Row]]:
    return [(ADD, row) for row in rows]


def made(core: PaimonCore, home: Path, options: dict[str, str]) -> SharedTable:
    """Create the table by Java, so that its batch reads skip level 0 with these options."""
    return SharedTable.made_by_java(core, home, COLUMNS, options, partition="day")


@pytest.fixture(params=[*PRODUCERS, *SEEN_LATE])
def table(paimon_core: PaimonCore, tmp_path: Path, request: pytest.FixtureRequest) -> SharedTable:
    """Create two partitions and write each twice."""
    table = made(paimon_core, tmp_path, {**PRODUCERS, **SEEN_LATE}[request.param])
    table.append_by_us(days((1, "a", 1), (2, "a", 2), (3, "b", 3)))
    table.append_by_us(days((2, "a", 20), (3, "b", 30), (4, "b", 4)))
    return table


def is_seen_alike(table: SharedTable, *, adds_up: bool = True) -> list[Row]:
    rows = table.rows_by_us()
    assert table.rows_by_java() == rows
    if table.schema.options.get("changelog-producer", "none") != "none" and adds_up:
        assert rows_of_stream(table) == rows
    return rows


def rows_of_stream(table: SharedTable) -> list[Row]:
    """Apply the stream. With producer ``input``, ``+I`` replaces an existing row, or in a table of sums adds to it."""
    if table.schema.options["changelog-producer"] != "input":
        return table.rows_of_stream()
    sums = "merge-engine" in table.schema.options
    rows: dict[tuple[Any, ...], Row] = {}
    for kind, row in table.stream_by_java():
        key = row[:2]
        if kind in (RowKind.UPDATE_BEFORE, RowKind.DELETE):
            rows.pop(key, None)
        else:
            rows[key] = (*key, row[2] + rows[key][2]) if sums and key in rows else row
    return sorted_rows(rows.values())


def test_a_tracked_overwrite_is_seen_at_once(table: SharedTable) -> None:
    is_seen_alike(table)
    ours = table.ours()
    ours.overwrite(arrow_of(ours, days((2, "a", 7), (5, "a", 5))), partition={"day": "a"})

    rows = is_seen_alike(table)
    assert [row for row in rows if row[1] == "a"] == [(2, "a", 7), (5, "a", 5)]
    table.append_by_us(days((2, "a", 1), (3, "b", 1)))
    table.append_by_java(days((5, "a", 1), (6, "b", 6)))
    table.ours().compact()
    is_seen_alike(table)


def test_a_tracked_drop_is_seen_at_once(table: SharedTable) -> None:
    table.ours().maintenance.drop_partitions([{"day": "a"}], change_tracking=True)

    assert {row[1] for row in is_seen_alike(table)} == {"b"}


def test_a_rollback_is_seen_at_once(table: SharedTable) -> None:
    table.ours().rollback_to(snapshot_id=1)

    assert is_seen_alike(table) == [(1, "a", 1), (2, "a", 2), (3, "b", 3)]
    table.append_by_us(days((1, "a", 5)))
    is_seen_alike(table)
    table.append_by_java(days((9, "a", 9)))
    table.compact_by_java()
    is_seen_alike(table)


def test_an_untracked_rollback_is_seen_by_batch_reads(table: SharedTable) -> None:
    table.ours().rollback_to(snapshot_id=1, change_tracking=False)

    assert is_seen_alike(table, adds_up=False)
    table.append_by_us(days((1, "a", 5)))
    is_seen_alike(table, adds_up=False)


def test_a_published_branch_is_seen_at_once(table: SharedTable) -> None:
    ours = table.ours()
    ours.branches.create("b")
    branch = ours.branches.open("b")
    branch.append(arrow_of(branch, days((1, "a", 7), (8, "b", 8))))
    published = sorted_rows(tuple(row.values()) for row in ours.branches.open("b").to_arrow().to_pylist())
    ours.branches.fast_forward("b")

    assert is_seen_alike(table) == published


def test_an_engine_of_its_own_compacts_what_a_tracked_overwrite_touched(
    paimon_core: PaimonCore, tmp_path: Path
) -> None:
    table = made(paimon_core, tmp_path, {**PRODUCERS["lookup, vectors"], "bucket": "4"})
    table.append_by_us(days(*((key, "a", key) for key in range(20))))
    ours = table.ours()
    order = ours.new_write().begin(commit_user="engine", overwrite=OverwriteScope.of({"day": "a"}))
    write = ours.new_write().open_task(order)
    write.write(arrow_of(ours, days((1, "a", 100))))
    message = write.prepare_commit()
    snapshot = ours.new_write().commit(order, [message], 1)
    assert snapshot is not None
    ours.maintenance.compact_written(snapshot, [message])

    assert is_seen_alike(table) == [(1, "a", 100)]


def test_an_untracked_overwrite_is_no_part_of_the_stream(paimon_core: PaimonCore, tmp_path: Path) -> None:
    table = made(paimon_core, tmp_path, PRODUCERS["lookup"])
    table.append_by_us(days((1, "a", 1)))
    told = table.stream_by_java()
    ours = table.ours()
    ours.overwrite(arrow_of(ours, days((2, "a", 2))), partition={"day": "a"}, change_tracking=False)

    assert table.stream_by_java() == told
    assert table.rows_by_java() == table.rows_by_us() == [(2, "a", 2)]


def test_an_append_to_a_first_row_table_is_seen_at_once(paimon_core: PaimonCore, tmp_path: Path) -> None:
    table = made(paimon_core, tmp_path, {"merge-engine": "first-row"})
    for turn in range(4):
        table.append_by_us(days((1, "a", turn), (turn, "b", turn)))

    assert (
        table.rows_by_java() == table.rows_by_us() == [(0, "b", 0), (1, "a", 0), (1, "b", 1), (2, "b", 2), (3, "b", 3)]
    )
    levels = {(file["partition"], file["level"]) for file in table.ours().inspect.files().to_pylist()}
    assert not any(level == 0 for _, level in levels)
