"""Separate driver of the real-time tests: streams JSON from Kafka topics into tables, one after the other.

``python real_time_driver.py`` takes the settings of its session as JSON on the command line, and a job as JSON in each
line of its input. It streams until the next line, which is empty, or until the stream fails, and prints the error or an
empty line; with ``fails`` it waits for the error. The session of the other tests does not have Spark's Kafka connector.
"""

from __future__ import annotations

import json
import select
import sys
from typing import TYPE_CHECKING, Any

from tests.support.spark_jars import SPARK_KAFKA, jars_in

if TYPE_CHECKING:
    from io import FileIO

    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.table.dynamic_table import DynamicTable


def main() -> None:
    """Run each job, until the input ends."""
    settings = json.loads(sys.argv[1])
    from storage_lib.spark import session

    spark = session("real time", master="local[4]", conf={**settings, "spark.jars": jars_in(SPARK_KAFKA)})
    spark.sparkContext.setLogLevel("OFF")
    # Not buffered, so that a line which has arrived is one that select() sees.
    lines = open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)  # noqa: SIM115
    while line := lines.readline():
        if not line.strip():
            continue  # it was to end a stream that has failed before
        try:
            _run(spark, json.loads(line), lines)
            print(flush=True)
        except Exception as failure:  # noqa: BLE001  the test judges it
            print(" ".join(f"{type(failure).__name__}: {failure}".split()), flush=True)


def _run(spark: SparkSession, job: dict[str, Any], lines: FileIO) -> None:
    from storage_lib import open_catalog

    catalog = open_catalog(job["warehouse"], job["catalog_options"])
    rows = source(spark, job)
    if "dimension" in job:
        rows = _counted(spark, catalog.load_table(job["dimension"]), rows)
    stream: Any = _by_sql(spark, catalog, rows, job) if "sql" in job else _by_python(catalog, rows, job)
    if job.get("fails"):
        stream.awaitTermination()
    while stream.error() is None and not select.select([lines], [], [], 0.2)[0]:
        pass
    error = stream.error()
    if error is None:
        lines.readline()
    stream.stop()
    if error is not None:
        raise error


def source(spark: SparkSession, job: dict[str, Any]) -> DataFrame:
    """Return the rows of the job's topic, whose values are JSON of the job's columns."""
    from pyspark.sql import functions as sql

    records = spark.readStream.format("kafka").option("kafka.bootstrap.servers", job["servers"])
    records = records.option("subscribe", job["topic"]).option("startingOffsets", "earliest")
    value = sql.from_json(sql.col("value").cast("string"), job["columns"], {"mode": "FAILFAST"})
    return records.load().select(value.alias("row")).select("row.*").selectExpr(*job.get("select", ["*"]))


def _counted(spark: SparkSession, names: DynamicTable, rows: DataFrame) -> DataFrame:
    """Return the number of even and of odd ids, with the name of each from another table of this library."""
    from pyspark.sql import functions as sql

    from storage_lib.spark import read

    halves = rows.select(sql.pmod("id", sql.lit(2)).alias("key"))
    named = halves.join(sql.broadcast(read(spark, names)), "key", "left")
    return named.groupBy("key", "name").count().selectExpr("key AS id", "name AS v", "CAST(count AS INT) AS n")


def _by_python(catalog: Any, rows: DataFrame, job: dict[str, Any]) -> Any:
    from storage_lib.spark import write_stream

    return write_stream(
        rows,
        catalog.load_table(job["table"]),
        checkpoint_location=job["checkpoint"],
        output_mode="update" if "dimension" in job else "append",
        trigger_seconds=job["seconds"],
        real_time=True,
    )


def _by_sql(spark: SparkSession, catalog: Any, rows: DataFrame, job: dict[str, Any]) -> Any:
    from storage_lib.sql import Session

    rows.createOrReplaceTempView("arriving")
    return list(Session(spark, catalog, database="db").execute_script(job["sql"]))[-1].stream


if __name__ == "__main__":
    main()
