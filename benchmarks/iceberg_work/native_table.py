"""Runs in the interpreter of .local/iceberg_spark: merges rows into a native Iceberg table, then reads tables by Spark.

    python native_table.py '{"rows": ..., "warehouse": ..., "jars": ..., "tables": {name: directory}, "rounds": 5}'

``rows`` is a directory with ``base.parquet`` and ``upsert-<n>.parquet``. Prints a JSON object: the seconds of each
MERGE, the path of the newest metadata, and the seconds of each scan of each table, in turns.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

CREATE = """
CREATE TABLE native.shop.rows (id BIGINT NOT NULL, name STRING, n BIGINT, price DOUBLE) USING iceberg
TBLPROPERTIES ('format-version' = '3', 'write.merge.mode' = 'merge-on-read')
"""
MERGE = """
MERGE INTO native.shop.rows t USING changed s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
"""
SCANS: dict[str, Callable[[DataFrame], Any]] = {
    "all rows": lambda frame: frame.write.format("noop").mode("overwrite").save(),
    "sum of a column": lambda frame: frame.selectExpr("sum(n)", "count(*)").collect(),
}


def main(asked: dict[str, Any]) -> dict[str, Any]:
    spark = session(asked["warehouse"], asked["jars"])
    spark.sql(CREATE)
    rows = Path(asked["rows"])
    spark.read.parquet(str(rows / "base.parquet")).writeTo("native.shop.rows").append()
    merges = []
    for path in sorted(rows.glob("upsert-*.parquet")):
        spark.read.parquet(str(path)).createOrReplaceTempView("changed")
        merges.append(timed(lambda: spark.sql(MERGE)))
    native = Path(asked["warehouse"], "shop", "rows")
    frames = {"native": str(native), **asked["tables"]}
    seconds: dict[str, dict[str, list[float]]] = {work: {name: [] for name in frames} for work in SCANS}
    answers: dict[str, list[Any]] = {}
    for number in range(asked["rounds"] + 1):
        for work, scan in SCANS.items():
            for name, place in frames.items():
                taken = timed(lambda: scan(spark.read.format("iceberg").load(place)))  # noqa: B023  called at once
                if number:  # the first round loads classes
                    seconds[work][name].append(taken)
    for name, place in frames.items():
        [row] = spark.read.format("iceberg").load(place).selectExpr("count(*)", "sum(n)").collect()
        answers[name] = list(row)
    version = (native / "metadata" / "version-hint.text").read_text().strip()
    spark.stop()
    return {
        "merges": merges,
        "metadata": str(native / "metadata" / f"v{version}.metadata.json"),
        "seconds": seconds,
        "answers": answers,
    }


def session(warehouse: str, jars: str) -> SparkSession:
    settings = {
        "spark.jars": ",".join(map(str, Path(jars).glob("*.jar"))),
        "spark.master": "local[2]",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "3g",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.native": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.native.type": "hadoop",
        "spark.sql.catalog.native.warehouse": warehouse,
    }
    builder = SparkSession.builder.appName("iceberg-readers")
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def timed(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


if __name__ == "__main__":
    answer = main(json.loads(sys.argv[1]))
    print(json.dumps(answer))
