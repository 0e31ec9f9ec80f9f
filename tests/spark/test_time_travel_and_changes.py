"""Older snapshots, branches, ranges of changes and system tables through Spark's options."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from storage_lib.errors import InvalidInputError
from storage_lib.spark import read, register
from storage_lib.spark.data_source.incremental_range import IncrementalRange
from storage_lib.table.changelog.change_scan import ChangeMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = pytest.mark.spark


def rows_of(df: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in df.collect())


def load(spark: SparkSession, table: DynamicTable, suffix: str = "", **options: str) -> DataFrame:
    register(spark)
    named = {"warehouse": table.address.warehouse, "table": f"{table.address.name}{suffix}"}
    spelled = {key.replace("_", "-"): value for key, value in options.items()}
    return spark.read.format("dynamic_table").options(**named, **spelled).load()


def append(table: DynamicTable, kind: str, id_: int, v: str) -> int:
    columns = {"id": [id_], "v": [v], "n": pa.array([1], pa.int32()), "_row_kind": [kind]}
    snapshot = table.append(pa.table(columns))
    assert snapshot is not None
    return snapshot.time_millis


def test_snapshots_branches_ranges_and_system_tables(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    table = make_table(bucket=2)
    append(table, "+I", 1, "a")
    second = append(table, "+U", 1, "b")
    append(table, "+I", 2, "c")
    append(table, "-D", 1, "b")
    table.tags.create("first", 1)
    table.branches.create("dev", tag="first")
    append(table.branches.open("dev"), "+I", 9, "z")

    assert rows_of(read(spark, table, tag="first")) == [(1, "a", 1)]
    assert (1, "b", 1) in rows_of(load(spark, table, **{"scan.timestamp-millis": str(second)}))
    assert rows_of(load(spark, table, "$branch_dev")) == [(1, "a", 1), (9, "z", 1)]
    assert rows_of(load(spark, table, branch="dev", **{"scan.tag-name": "first"})) == [(1, "a", 1)]

    net = load(spark, table, incremental_between="1,4")
    assert net.columns == ["id", "v", "n", "_row_kind"]
    assert rows_of(net) == [(1, "b", 1, "-D"), (2, "c", 1, "+I")]
    every = load(spark, table, incremental_between="first,4", incremental_between_scan_mode="every")
    assert rows_of(every) == [(1, "b", 1, "+U"), (1, "b", 1, "-D"), (2, "c", 1, "+I")]
    assert rows_of(load(spark, table, incremental_between_timestamp=f"0,{second}")) == rows_of(
        load(spark, table, incremental_between=f"0,{table.context.file_store.snapshots.last_before(second)}")
    )

    snapshots = load(spark, table, "$snapshots").select("snapshot_id", "commit_kind")
    assert rows_of(snapshots) == [(n, "APPEND") for n in range(1, 5)]
    assert rows_of(load(spark, table, "$branch_dev$tags").select("tag_name")) == [("first",)]
    assert load(spark, table, "$files").where("level = 0").count() == 4
    assert ("-D", 1, "b", 1) in rows_of(load(spark, table, "$audit_log"))


def test_the_range_of_an_incremental_read_is_spelled_as_paimon_spells_it() -> None:
    assert IncrementalRange.parse({}) is None
    assert IncrementalRange.parse({"incremental-between": "3, 7"}) == IncrementalRange(snapshots=("3", "7"))
    assert IncrementalRange.parse(
        {
            "incremental-between-timestamp": "1715648400000,2024-05-14T02:00:00Z",
            "incremental-between-scan-mode": "changelog",
        }
    ) == IncrementalRange(times=(1_715_648_400_000, 1_715_652_000_000), mode=ChangeMode.EVERY)


@pytest.mark.parametrize(
    "said",
    [
        {"incremental-between": "3"},
        {"incremental-between": "3,4,5"},
        {"incremental-between": "3,4", "incremental-between-timestamp": "3,4"},
        {"incremental-between-scan-mode": "net"},
        {"incremental-between": "3,4", "incremental-between-scan-mode": "some"},
        {"incremental-between-timestamp": "yesterday,today"},
        {"incremental-between-timestamp": "2024-05-14T01:00:00,2024-05-14T02:00:00"},
    ],
)
def test_a_range_that_is_none_is_refused(said: dict[str, str]) -> None:
    with pytest.raises(InvalidInputError, match="incremental-between"):
        IncrementalRange.parse(said)
