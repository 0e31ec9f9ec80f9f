"""Totals of partitions from metadata: exact, or none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from storage_lib import AddColumn, AlterType, RenameColumn, open_catalog
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.planning.partition_totals import Bounds, total_of
from tests.support.data_file_metas import NO_STATS

if TYPE_CHECKING:
    from storage_lib.file_store.planning.plan import DividedPlan
    from storage_lib.table.dynamic_table import DynamicTable

COLUMNS = {"p": "INT NOT NULL", "id": "BIGINT NOT NULL", "n": "INT", "text": "STRING", "double": "DOUBLE"}


@pytest.fixture
def table(tmp_path: Path) -> DynamicTable:
    """Return a table of two partitions, whose three files need no merge."""
    table = open_catalog(str(tmp_path)).create_table(
        "db.t", COLUMNS, primary_key=["p", "id"], partition_by=["p"], options={"bucket": "1", "write-only": "true"}
    )
    table.append([row(1, 1, 5), row(1, 2, None), row(2, 3, None)])
    table.append([row(1, 10, -7)])
    return table


def row(partition: int, id_: int, n: int | None) -> dict[str, object]:
    return {"p": partition, "id": id_, "n": n, "text": f"text {id_}", "double": float(id_)}


def with_files(plan: DividedPlan, change: Callable[[DataFileMeta], DataFileMeta]) -> DividedPlan:
    entries = tuple(replace(entry, file=change(entry.file)) for entry in plan.unmerged.entries)
    return replace(plan, unmerged=replace(plan.unmerged, entries=entries))


def test_totals_are_those_of_the_rows_of_each_partition(table: DynamicTable) -> None:
    read = table.new_read()

    totals = read.totals(read.plan_divided(), ["id", "n"])

    assert totals is not None
    assert [(each.row_count, each.bounds["id"], each.bounds["n"]) for each in totals] == [
        (3, Bounds(1, 10), Bounds(-7, 5)),
        (1, Bounds(3, 3), Bounds(None, None)),
    ]
    assert total_of(totals, ["n"]) == (4, {"n": Bounds(-7, 5)})
    assert total_of((), ["n"]) == (0, {"n": Bounds(None, None)})


@pytest.mark.parametrize("column", ["text", "double"])
def test_bounds_of_text_and_floats_are_not_exact(table: DynamicTable, column: str) -> None:
    read = table.new_read()

    assert read.totals(read.plan_divided(), [column]) is None
    assert read.totals(read.plan_divided(), []) is not None


def test_rows_that_have_to_be_merged_have_no_totals(table: DynamicTable) -> None:
    table.append([row(1, 2, 2)])
    read = table.new_read()

    assert read.totals(read.plan_divided(), []) is None
    assert table.count() == 4


@pytest.mark.parametrize(
    "change",
    [
        lambda file: replace(file, delete_row_count=1),
        lambda file: replace(file, delete_row_count=None),
        lambda file: replace(file, write_cols=("n",)),
    ],
    ids=["deletions", "unknown deletions", "some columns"],
)
def test_files_that_have_more_or_less_than_their_rows_have_no_totals(
    table: DynamicTable, change: Callable[[DataFileMeta], DataFileMeta]
) -> None:
    read = table.new_read()

    assert read.totals(with_files(read.plan_divided(), change), []) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda file: replace(file, value_stats=NO_STATS),
        lambda file: replace(file, value_stats_cols=("id",)),
    ],
    ids=["none", "of other columns"],
)
def test_without_statistics_there_is_a_count_but_no_bounds(
    table: DynamicTable, change: Callable[[DataFileMeta], DataFileMeta]
) -> None:
    read = table.new_read()
    plan = with_files(read.plan_divided(), change)

    assert read.totals(plan, ["n"]) is None
    assert sum(each.row_count for each in read.totals(plan, []) or ()) == 4


def test_a_column_that_was_converted_has_no_bounds_and_a_renamed_one_has(table: DynamicTable) -> None:
    changed = table.alter(AlterType("n", "BIGINT")).alter(RenameColumn("id", "number")).alter(AddColumn("new", "INT"))
    read = changed.new_read()
    plan = read.plan_divided()

    assert read.totals(plan, ["n"]) is None
    totals = read.totals(plan, ["number", "new"])
    assert totals is not None
    assert total_of(totals, ["number", "new"])[1] == {"number": Bounds(1, 10), "new": Bounds(None, None)}


def test_a_compacted_table_with_a_key_is_counted_without_reading_its_files(table: DynamicTable) -> None:
    table.append([row(1, 2, 2)])
    table.compact()
    for file in Path(table.location).rglob("*.parquet"):
        file.unlink()

    assert table.count() == 4


def test_bounds_that_are_null_though_values_are_not_are_unknown(table: DynamicTable) -> None:
    table.append(pa.table({"p": [3], "id": [1], "n": pa.array([1], pa.int32()), "text": [""], "double": [0.0]}))
    read = table.new_read()
    nulls = read.plan_divided().unmerged.entries[-2].file.value_stats

    def without_bounds(file: DataFileMeta) -> DataFileMeta:
        stats = replace(nulls, null_counts=tuple(0 for _ in nulls.null_counts))
        return replace(file, value_stats=stats) if file.value_stats == nulls else file

    assert nulls.null_counts[2] == 1
    assert read.totals(read.plan_divided(), ["n"]) is not None
    assert read.totals(with_files(read.plan_divided(), without_bounds), ["n"]) is None
