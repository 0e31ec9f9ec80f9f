"""Driver of the memory test: loads, upserts, compacts and scans a small and a large table; prints memory as JSON.

    python tests/support/spark_memory_job.py '{"master": ..., "conf": ..., "warehouse": ..., "rows": [...]}'

Rows have ``LETTERS`` letters each, so that few rows take much memory.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil  # type: ignore[import-untyped]
import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.catalog.catalog import Catalog

LETTERS = 1600
_INTERVAL_SECONDS = 0.1


@dataclass
class Peak:
    """Largest memory so far of one Python process of the driver: this one, or one that plans or commits, in bytes."""

    bytes: int = 0


@contextmanager
def peak_of_python() -> Iterator[Peak]:
    """Sample the memory until the body ends. Pages that processes share do not count."""
    peak, ended = Peak(), threading.Event()

    def sample() -> None:
        while not ended.wait(_INTERVAL_SECONDS):
            peak.bytes = max(peak.bytes, _bytes_of_python())

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    try:
        yield peak
    finally:
        ended.set()
        sampler.join()


def _bytes_of_python() -> int:
    process, largest = psutil.Process(), 0
    for each in (process, *process.children(recursive=True)):
        with suppress(psutil.Error):
            if each.name().startswith("python"):
                largest = max(largest, each.memory_full_info().uss)
    return largest


def rows_of(spark: SparkSession, first: int, count: int, word: str) -> DataFrame:
    """Return ``count`` rows with ids from ``first`` and texts of ``LETTERS`` letters that start with ``word``."""
    texts = f"rpad(concat('{word}', id), {LETTERS}, cast(id AS STRING))"
    return spark.range(first, first + count, numPartitions=8).selectExpr("id", f"{texts} AS v")


def measured(spark: SparkSession, catalog: Catalog, rows: int) -> dict[str, int]:
    """Load ``rows`` rows, replace half of them, compact and scan; return the letters that are read, and the memory."""
    from storage_lib.spark import compact, read, write

    table = catalog.create_table(
        f"db.t{rows}",
        pa.schema([("id", pa.int64()), ("v", pa.string())]),
        primary_key=["id"],
        options={"bucket": "2", "log.system": "none", "write-only": "true"},
    )
    with peak_of_python() as peak:
        write(rows_of(spark, 0, rows, "load"), table)
        write(rows_of(spark, rows // 2, rows // 2, "upsert"), table)
        merged = _scanned(read(spark, table))
        compact(spark, table)
        compacted = _scanned(read(spark, table))
    assert merged == compacted
    return {**merged, "peak_bytes": peak.bytes}


def _scanned(df: DataFrame) -> dict[str, int]:
    names = ("rows", "letters", "upserted")
    [row] = df.selectExpr("count(*)", "sum(length(v))", "count_if(v LIKE 'upsert%')").collect()
    return dict(zip(names, row, strict=True))


def main() -> None:
    """Measure each number of rows in one session, in order."""
    from storage_lib import open_catalog
    from storage_lib.spark import session

    job = json.loads(sys.argv[1])
    spark = session("memory test", master=job["master"], conf=job["conf"])
    catalog = open_catalog(job["warehouse"])
    heap = spark.sparkContext._jvm.java.lang.Runtime.getRuntime().maxMemory()  # type: ignore[union-attr, unused-ignore]
    print(json.dumps({"heap_bytes": heap, "sizes": [measured(spark, catalog, rows) for rows in job["rows"]]}))
    spark.stop()


if __name__ == "__main__":
    main()
