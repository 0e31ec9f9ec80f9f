"""Runs a small Spark session through typical operations, to archive the Java classes that it loads: `make servers`.

See `quick_spark.py`. The caller sets the path of the archive in SPARK_SUBMIT_OPTS.
"""

from __future__ import annotations

import tempfile

import pyarrow as pa

from storage_lib import open_catalog
from storage_lib.spark import read, read_stream, session, write, write_stream

LOOPBACK_ONLY = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def main() -> None:
    """Write a table, read it, and stream it into another."""
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
    with tempfile.TemporaryDirectory() as scratch:
        catalog = open_catalog(f"{scratch}/warehouse")
        first, second = (
            catalog.create_table(name, columns, primary_key=("id",), options={"log.system": "none"})
            for name in ("archive.first", "archive.second")
        )
        spark = session(
            "archive", master="local[2]", conf={**LOOPBACK_ONLY, "spark.sql.warehouse.dir": f"{scratch}/spark"}
        )
        write(spark.range(9).selectExpr("id", "CAST(id AS STRING) AS name"), first)
        changes = read_stream(spark, first)
        write_stream(
            changes, second, checkpoint_location=f"{scratch}/checkpoint", available_now=True
        ).awaitTermination()
        read(spark, second).groupBy("name").count().collect()
        # The JVM writes the archive when its standard input ends; wait for that.
        java = spark.sparkContext._gateway.proc  # type: ignore[union-attr]  # noqa: SLF001  pyspark has no other handle
        spark.stop()
        java.stdin.close()
        java.wait()


if __name__ == "__main__":
    main()
