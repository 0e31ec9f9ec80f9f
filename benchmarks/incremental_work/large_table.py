"""One large table, of which a thousand rows change: seconds and memory of a refresh of sums and counts by group."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from benchmarks.incremental_work.answer_check import AnswerCheck
from benchmarks.incremental_work.driver_memory import sampled_driver
from storage_lib.spark import create_materialized_table, read, refresh, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.catalog.catalog import Catalog

GROUPS = 1000
_GROUP = f"(id * 2654435761) % 4294967296 % {GROUPS}"
"""Spreads the changed ids over the groups."""
_QUERY = (
    "SELECT bucket_group, count(*) AS n, sum(amount) AS amount, sum(price) AS price FROM {table} GROUP BY bucket_group"
)
_COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("bucket_group", pa.int64()),
        pa.field("amount", pa.int64()),
        pa.field("price", pa.decimal128(12, 2)),
    ]
)
_LOADS = 10
_BUCKETS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeTableWork:
    """Number of rows, of rows that change before each refresh, and of refreshes; the first one does not count."""

    rows: int
    changed: int
    refreshes: int


class LargeTable:
    """Changes the rows of evenly spread keys: in all groups, and other keys each time."""

    def __init__(self, spark: SparkSession, catalog: Catalog, work: LargeTableWork) -> None:
        self._spark = spark
        self._work = work
        self._check = AnswerCheck()
        options = {"bucket": str(_BUCKETS), "log.system": "none"}
        self._table = catalog.create_table("large.t", _COLUMNS, primary_key=["id"], options=options)
        self._sums = create_materialized_table(
            catalog, "large.sums", _QUERY.format(table="t"), spark=spark, options={"log.system": "none"}
        )

    def run(self) -> Iterator[dict[str, Any]]:
        """Yield a record for each refresh. Raises ``WrongRowsError``."""
        rows = self._work.rows
        share = -(-rows // _LOADS)
        for start in range(0, rows, share):
            ids = self._spark.range(start, min(rows, start + share))
            write(_valued(ids, "0"), self._table)
        yield self._refreshed(0)
        for number in range(1, self._work.refreshes + 1):
            ids = self._spark.range(self._work.changed).selectExpr(f"{self._changed('id', number)} AS id")
            write(_valued(ids, str(number)), self._table)
            yield self._refreshed(number)

    def _step(self) -> int:
        return self._work.rows // self._work.changed

    def _changed(self, place: str, number: int) -> str:
        return f"{place} * {self._step()} + {number % self._step()}"

    def _refreshed(self, number: int) -> dict[str, Any]:
        with sampled_driver(os.getpid()) as peaks:
            begin = time.perf_counter()
            result = refresh(self._spark, self._sums)
            ours = time.perf_counter() - begin
        begin = time.perf_counter()
        read(self._spark, self._table).createOrReplaceTempView("large_t")
        self._spark.sql(_QUERY.format(table="large_t")).collect()
        whole = time.perf_counter() - begin
        self._check.check_answer(f"large.sums after refresh {number}", self._expected(number), self._sums.to_arrow())
        return {
            "work": "large table",
            "rows": self._work.rows,
            "changed": self._work.changed if number else self._work.rows,
            "refresh": number,
            "counts": number > 1,
            "mode": str(result.mode),
            "reason": result.reason,
            "rows_read": sum(result.rows_read.values()),
            "rows_written": result.rows_written,
            "ours_seconds": round(ours, 4),
            "query_seconds": round(whole, 4),
            "driver_bytes": peaks.driver,
            "jvm_bytes": peaks.jvm,
            "workers_bytes": peaks.workers,
        }

    def _expected(self, number: int) -> str:
        """Return the answer in DuckDB's SQL, from the formulas of the rows and not from the table."""
        step = self._step()
        versions = " ".join(
            f"WHEN id % {step} = {each % step} AND id // {step} < {self._work.changed} THEN {each}"
            for each in range(number, 0, -1)
        )
        version = f"CASE {versions} ELSE 0 END" if versions else "0"
        rows = f"SELECT range AS id, {version} AS version FROM range({self._work.rows})"
        return (
            f"SELECT {_GROUP} AS bucket_group, count(*) AS n, sum((id * 7919 + version) % 1000003) AS amount, "
            f"sum((((id * 104729 + version) % 1000000) / 100)::DECIMAL(12, 2)) AS price FROM ({rows}) GROUP BY ALL"
        )


def _valued(ids: DataFrame, version: str) -> DataFrame:
    return ids.selectExpr(
        "id",
        f"{_GROUP} AS bucket_group",
        f"(id * 7919 + {version}) % 1000003 AS amount",
        f"cast(((id * 104729 + {version}) % 1000000) / 100 AS DECIMAL(12, 2)) AS price",
    )
