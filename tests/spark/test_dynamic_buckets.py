"""Tables with dynamic buckets through Spark: each assigner's keys are in one task, or the write is refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib import WarehouseCatalog
from storage_lib.spark import read, write, write_stream
from tests.support.dynamic_bucket_lives import check_index

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = pytest.mark.spark

OPTIONS = {"bucket": "-1", "dynamic-bucket.target-row-num": "20", "dynamic-bucket.assigner-parallelism": "3"}


def table_of(tmp_path: Path, key: list[str]) -> DynamicTable:
    catalog = WarehouseCatalog(str(tmp_path), {"log.system": "none"})
    columns = {"id": "BIGINT", "p": "STRING", "n": "INT"}
    return catalog.create_table("db.t", columns, primary_key=key, partition_by=["p"], options=OPTIONS)


@pytest.mark.parametrize("key", [["id", "p"], ["id"]], ids=["within partitions", "across partitions"])
def test_tasks_write_side_by_side_and_no_key_is_there_twice(
    spark: SparkSession, tmp_path: Path, key: list[str]
) -> None:
    table = table_of(tmp_path, key)
    first = spark.range(200).selectExpr("id", "CAST(id % 2 AS STRING) AS p", "1 AS n").repartition(4)
    again = spark.range(100, 250).selectExpr("id", "CAST(id % 3 AS STRING) AS p", "2 AS n").repartition(4)
    write(first, table)
    check_index(table)
    write(again, table)
    check_index(table)
    expected = {(each, str(each % 2)) if len(key) > 1 else each: (str(each % 2), 1) for each in range(200)}
    expected |= {(each, str(each % 3)) if len(key) > 1 else each: (str(each % 3), 2) for each in range(100, 250)}
    shown = {(row.id, row.p) if len(key) > 1 else row.id: (row.p, row.n) for row in read(spark, table).collect()}
    assert read(spark, table).count() == len(expected)
    assert shown == expected
    write(again.limit(30), table, mode="overwrite", partition={})
    assert read(spark, table).count() == 30
    check_index(table)


def test_a_plain_write_from_several_tasks_is_refused_and_from_one_is_not(spark: SparkSession, tmp_path: Path) -> None:
    table = table_of(tmp_path, ["id", "p"])
    options = {"warehouse": table.address.warehouse, "table": table.address.name}
    rows = spark.range(100).selectExpr("id", "'a' AS p", "1 AS n")
    with pytest.raises(Exception, match=r"tasks brought rows of the same assigner"):
        rows.repartition(3).write.format("dynamic_table").options(**options).mode("append").save()
    assert table.inspect.snapshots().num_rows == 0
    rows.coalesce(1).write.format("dynamic_table").options(**options).mode("append").save()
    assert read(spark, table).count() == 100


def test_a_stream_into_dynamic_buckets(spark: SparkSession, tmp_path: Path) -> None:
    table = table_of(tmp_path / "warehouse", ["id"])
    source = str(tmp_path / "source")
    for n, p in ((1, "a"), (2, "b")):
        spark.range(50).selectExpr("id", f"'{p}' AS p", f"{n} AS n").write.mode("append").parquet(source)
        stream = spark.readStream.schema("id long, p string, n int").parquet(source)
        checkpoint = str(tmp_path / "checkpoint")
        write_stream(stream, table, checkpoint_location=checkpoint, available_now=True).awaitTermination(240)
        assert {(row.p, row.n) for row in read(spark, table).collect()} == {(p, n)}
        assert read(spark, table).count() == 50
