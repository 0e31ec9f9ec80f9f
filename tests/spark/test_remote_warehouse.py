"""Spark's tasks open a remote warehouse themselves: only the address, which includes its secrets, is sent to them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from local_s3 import LocalS3
from storage_lib import open_catalog
from storage_lib.spark import read, write
from storage_lib.spark.compaction.distributed_compaction import compact

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_table_in_s3_is_written_read_and_compacted_by_spark(spark: SparkSession, s3: LocalS3, tmp_path: Path) -> None:
    warehouse = f"s3://lake{tmp_path}"
    catalog = open_catalog(warehouse, s3.options)
    table = catalog.create_table(
        "db.t", pa.schema([("id", pa.int64()), ("v", pa.string())]), primary_key=["id"], options={"bucket": "2"}
    )

    write(spark.range(1000).selectExpr("id", "concat('v', id) AS v"), table)
    write(spark.range(500, 1500).selectExpr("id", "'new' AS v"), table)
    plain = spark.read.format("dynamic_table").options(**s3.options).load(f"{warehouse}/db.db/t")

    assert read(spark, table).where("v = 'new'").count() == 1000
    assert plain.where("id = 3").collect()[0]["v"] == "v3"
    assert "local-secret" not in plain._jdf.queryExecution().toString()
    compact(spark, table)
    assert table.to_arrow().num_rows == 1500
