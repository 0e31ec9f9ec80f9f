"""Spark driver of the soak: one stream writes into the table, one copies it, with old rows from its own state.

``python -m tests.soak.spark_driver JOB``: it resumes from its checkpoints and runs until killed; a job that
``finishes`` completes the planned batch and copies all rows. A fatal error is written to ``spark.error``.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storage_lib import RetryableError, open_catalog
from storage_lib.spark import read_stream, session, write_stream
from tests.soak.spark_side import COPY_TABLE
from tests.soak.spark_source import SoakSource
from tests.support.orders_table import NAME

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.spark.verbs.table_stream import TableStream

_CONF = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
}


class Driver:
    """The queries of one driver."""

    def __init__(self, spark: SparkSession, job: dict[str, Any]) -> None:
        self._spark = spark
        self._job = job
        self._notes = Path(job["notes"])
        catalog = open_catalog(job["warehouse"], {"log.kafka.bootstrap.servers": job["servers"]})
        self._table, self._copy = catalog.load_table(NAME), catalog.load_table(COPY_TABLE)

    def write(self) -> TableStream:
        """Start the query that writes to the table, one commit per batch."""
        finishes = json.dumps(self._job["finishes"])
        source = self._spark.readStream.format("soak").options(seed=str(self._job["seed"]), finishes=finishes).load()
        return write_stream(
            source, self._table, checkpoint_location=str(self._notes / "checkpoint-in"), compaction=False
        )

    def copy(self, *, available_now: bool = False) -> TableStream:
        """Start the query that copies the table's stream into a table that counts rows."""
        source = read_stream(
            self._spark,
            self._table,
            normalize="state",
            state_directory=str(self._notes / "state"),
            rows_per_trigger_max=5000,
        )
        checkpoint = str(self._notes / "checkpoint-out")
        return write_stream(source, self._copy, checkpoint_location=checkpoint, available_now=available_now)

    def run(self) -> None:
        """Run both queries forever; restart them after retryable errors."""
        streams = {self.write: self.write(), self.copy: self.copy()}
        while True:
            for start, stream in list(streams.items()):
                if stream.isActive:
                    continue
                failure = stream.error()
                if failure is not None and not isinstance(failure, RetryableError):
                    raise failure
                stream.stop()
                streams[start] = start()
            time.sleep(0.2)

    def finish(self) -> None:
        """Complete the planned batch, then copy all remaining rows."""
        writing = self.write()
        writing.query.processAllAvailable()
        writing.stop()
        self.copy(available_now=True).awaitTermination()


def main() -> None:
    """Run the job from the command line."""
    job = json.loads(sys.argv[1])
    try:
        spark = session("soak", master="local[2]", conf=_CONF)
        spark.sparkContext.setLogLevel("ERROR")
        spark.dataSource.register(SoakSource)
        driver = Driver(spark, job)
        if job["finishes"]:
            driver.finish()
        else:
            driver.run()
        spark.stop()
    except BaseException:
        (Path(job["notes"]) / "spark.error").write_text(traceback.format_exc())
        raise


if __name__ == "__main__":
    main()
