"""Rows that Spark's executors generate, so that no input limits the speed; the same for each number of workers."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("dt", pa.string()),
        pa.field("name", pa.string()),
        pa.field("amount", pa.decimal128(12, 2)),
        pa.field("score", pa.float64()),
        pa.field("version", pa.int32()),
    ]
)
_PARTITIONS = 8


def rows_at(spark: SparkSession, first: int, count: int, *, keys: int, version: int) -> DataFrame:
    """Return the rows of ``count`` places from ``first``.

    The keys of the first ``keys`` places are the numbers below ``keys``, each once and in no order.
    """
    step = next(step for step in range(keys * 3 // 5, 2 * keys) if gcd(step, keys) == 1)
    places = spark.range(first, first + count, numPartitions=_PARTITIONS)
    return places.selectExpr(f"id * {step} % {keys} AS id", f"{version} AS version").selectExpr(
        "id",
        "concat('2026-01-', lpad(cast(id % 30 + 1 AS STRING), 2, '0')) AS dt",
        "substr(md5(cast(id AS STRING)), 1, 12) AS name",
        "cast((xxhash64(id) & 9999999) / 100 AS DECIMAL(12, 2)) AS amount",
        "(xxhash64(id, version) & 4294967295) / 4294967296 AS score",
        "version",
    )


def answer(df: DataFrame) -> dict[str, object]:
    """Scan all columns; return what :func:`expected` returns for a table with the right rows."""
    df = df.selectExpr(
        "count(*) AS rows",
        "sum(id) AS ids",
        "sum(version) AS versions",
        "max(dt) AS newest",
        "sum(length(name)) AS letters",
        "sum(amount) IS NOT NULL AND sum(score) IS NOT NULL AS has_sums",
    )
    [row] = df.collect()
    return dict(row.asDict())


def expected(rows: int, replaced: int) -> dict[str, object]:
    """Return the answer for ``rows`` rows of version 0, of which ``replaced`` have been replaced by version 1."""
    return {
        "rows": rows,
        "ids": rows * (rows - 1) // 2,
        "versions": replaced,
        "newest": "2026-01-30",
        "letters": 12 * rows,
        "has_sums": True,
    }
