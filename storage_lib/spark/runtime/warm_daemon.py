"""Spark's Python daemon with our tasks' modules imported before it forks a worker.

``python -m storage_lib.spark.runtime.warm_daemon`` replaces ``python -m pyspark.daemon``
(``spark.python.daemon.module``).
A cold worker spends one to two seconds of processor time on imports. Spark forks new workers whenever two jobs run at
the same time, so the first compaction during a stream would delay its micro-batches by that time.

Workers also collect garbage after every task. Objects frozen here, before the fork, are never traversed again, so
their pages are not copied.
"""

from __future__ import annotations

import gc
from contextlib import suppress

import pandas as pd  # noqa: F401  pyarrow imports it when it first converts Python values to an array
import pyarrow.parquet  # noqa: F401
from pyspark.daemon import manager

from storage_lib.spark.data_source import batch_reader, batch_writer, stream_reader, stream_writer
from storage_lib.spark.writing import write_job

with suppress(ImportError):  # optional dependency
    import storage_lib.log_store.kafka.kafka_log_store  # noqa: F401

__all__ = ["batch_reader", "batch_writer", "main", "stream_reader", "stream_writer", "write_job"]


def main() -> None:
    """Serve Spark's requests for workers until it closes our standard input."""
    gc.collect()
    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
