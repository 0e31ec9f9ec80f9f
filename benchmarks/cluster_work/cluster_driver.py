"""Driver of one cluster: does each work once, and prints a record of each as a line of JSON.

python -m benchmarks.cluster_work.cluster_driver SETTINGS
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from benchmarks.cluster_work.generated_rows import COLUMNS, answer, expected, rows_at
from benchmarks.cluster_work.processor_time import processor_seconds
from storage_lib import open_catalog
from storage_lib.spark import compact, read, session, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib import DynamicTable

_WARM_UP_ROWS = 20_000
_UPSERT_SHARE = 20
"""An upsert replaces one row of this many."""


class WrongAnswerError(Exception):
    """A scan's answer differs from the expected one."""


class ClusterDriver:
    """Runs the works on one cluster and measures them."""

    def __init__(self, spark: SparkSession, settings: dict[str, Any]) -> None:
        self._spark = spark
        self._catalog = open_catalog(settings["warehouse"])
        self._buckets: int = settings["buckets"]
        self._upserts: int = settings["upserts"]
        self._workers: list[int] = settings["worker_pids"]
        self.records: list[dict[str, Any]] = []

    def run(self, name: str, rows: int) -> None:
        """Load ``rows`` rows into a new table, upsert, scan, compact and scan it. Raises ``WrongAnswerError``."""
        table = self._catalog.create_table(
            f"db.{name}",
            COLUMNS,
            primary_key=["id"],
            options={"bucket": str(self._buckets), "log.system": "none", "write-only": "true"},
        )
        share = rows // _UPSERT_SHARE
        self._measured("load", lambda: write(rows_at(self._spark, 0, rows, keys=rows, version=0), table))
        for number in range(self._upserts):
            upserted = rows_at(self._spark, number * share, share, keys=rows, version=1)
            self._measured("upsert", lambda upserted=upserted: write(upserted, table))  # type: ignore[misc]
        right = expected(rows, self._upserts * share)
        self._measured("scan, uncompacted", lambda: self._scan(table, right))
        self._measured("compaction", lambda: compact(self._spark, table))
        self._measured("scan, compacted", lambda: self._scan(table, right))

    def _scan(self, table: DynamicTable, right: dict[str, object]) -> None:
        found = answer(read(self._spark, table))
        if found != right:
            message = f"{table.name} answered {found}, not {right}"
            raise WrongAnswerError(message)

    def _measured(self, work: str, act: Callable[[], object]) -> None:
        processes = [os.getpid(), *self._workers]
        before = [processor_seconds(pid) for pid in processes]
        begin = time.perf_counter()
        act()
        seconds = time.perf_counter() - begin
        after = [processor_seconds(pid) for pid in processes]
        # Spark kills idle Python processes, and the time of some of them is lost.
        driver, *workers = [max(0.0, now - used) for now, used in zip(after, before, strict=True)]
        self.records.append({"work": work, "seconds": seconds, "driver_cpu": driver, "workers_cpu": workers})


def main() -> None:
    """Warm the cluster up, then run all works and print their records."""
    settings = json.loads(sys.argv[1])
    spark = session("cluster benchmark", master=settings["master"], conf=settings["conf"])
    driver = ClusterDriver(spark, settings)
    driver.run("warm_up", _WARM_UP_ROWS)
    driver.records.clear()
    driver.run("t", settings["rows"])
    for record in driver.records:
        print(json.dumps(record))
    spark.stop()


if __name__ == "__main__":
    main()
