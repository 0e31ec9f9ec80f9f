"""Runs TPC-H's queries over this library's tables and over Parquet files, in one Spark session."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from benchmarks.spark_engine.queries import same_rows
from benchmarks.tpch_work.tpch_tables import KEYS, queries
from benchmarks.tpch_work.upserted_table import commits_of, with_plain_strings
from storage_lib.sql import Session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.catalog.catalog import Catalog

DATABASE = "tpch"
_LARGE = 10_000
_BUCKETS = 4


class WrongAnswerError(Exception):
    """A query's answer over merged rows differs from its answer over the same rows in Parquet files."""


def write_tables(catalog: Catalog, data: Path) -> None:
    """Write each table in four commits, of which none is compacted, with one bucket or, if it is large, four."""
    for name, key in KEYS.items():
        final = with_plain_strings(pq.read_table(data / f"{name}.parquet"))
        buckets = _BUCKETS if final.num_rows > _LARGE else 1
        options = {"bucket": str(buckets), "write-only": "true", "log.system": "none"}
        table = catalog.create_table(f"{DATABASE}.{name}", final.schema, primary_key=key, options=options)
        for rows in commits_of(final, key):
            table.append(rows)


class TpchRun:
    """Queries by this library's SQL, and by Spark's in a session of its own of the same JVM."""

    def __init__(self, spark: SparkSession, catalog: Catalog, data: Path) -> None:
        self._sql = Session(spark, catalog, database=DATABASE)
        self._plain = spark.newSession()
        for name in KEYS:
            self._plain.read.parquet(str(data / f"{name}.parquet")).createOrReplaceTempView(name)

    def measured(self, scale: float, repeats: int, *, warm_ups: int) -> Iterator[dict[str, Any]]:
        """Yield a record per query: the median seconds of both, after ``warm_ups`` runs of each that do not count.

        Raises ``WrongAnswerError``.
        """
        for name, text in queries(scale).items():
            seconds: dict[str, list[float]] = {"ours": [], "plain parquet": []}
            for repeat in range(warm_ups + repeats):
                ours, took_ours = _timed(lambda text=text: self._ours(text))  # type: ignore[misc]
                plain, took_plain = _timed(lambda text=text: self._of_plain(text))  # type: ignore[misc]
                if not same_rows(ours, plain):
                    message = f"{name} answered {ours[:5]}, but {plain[:5]} over Parquet files"
                    raise WrongAnswerError(message)
                if repeat >= warm_ups:
                    seconds["ours"].append(took_ours)
                    seconds["plain parquet"].append(took_plain)
            medians = {system: statistics.median(took) for system, took in seconds.items()}
            yield _record(name, scale, len(plain), medians["ours"], medians["plain parquet"])

    def _ours(self, text: str) -> list[list[Any]]:
        frame = self._sql.execute(text).dataframe
        if frame is None:
            message = f"not a query: {text}"
            raise ValueError(message)
        return [list(row) for row in frame.collect()]

    def _of_plain(self, text: str) -> list[list[Any]]:
        return [list(row) for row in self._plain.sql(text).collect()]


def summed(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the record of all queries together."""
    ours, plain = (sum(each[name] for each in records) for name in ("ours_seconds", "plain_seconds"))
    return _record("all", records[0]["scale"], sum(each["rows"] for each in records), ours, plain)


def _record(name: str, scale: float, rows: int, ours: float, plain: float) -> dict[str, Any]:
    return {
        "query": name,
        "scale": scale,
        "rows": rows,
        "ours_seconds": round(ours, 4),
        "plain_seconds": round(plain, 4),
        "ratio": round(ours / plain, 3),
    }


def _timed(work: Callable[[], list[list[Any]]]) -> tuple[list[list[Any]], float]:
    begin = time.perf_counter()
    rows = work()
    return rows, time.perf_counter() - begin
