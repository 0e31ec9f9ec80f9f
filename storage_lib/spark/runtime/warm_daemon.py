"""Spark's Python daemon, with what our tasks import already imported when it forks a worker.

``python -m storage_lib.spark.runtime.warm_daemon`` stands for ``python -m pyspark.daemon``
(``spark.python.daemon.module``).
A worker that begins cold spends one to two seconds of processor time on imports. Spark forks new ones whenever two jobs
run at the same time, so the first compaction during a stream would delay its micro-batches for as long.

Workers also collect garbage after every task. What is frozen here, before the fork, they never look through again,
nor do they copy its pages.
"""

from __future__ import annotations

import gc
from contextlib import suppress

import pandas as pd  # noqa: F401  pyarrow imports it with the first array that it makes of Python values
import pyarrow.parquet  # noqa: F401
from pyspark.daemon import manager

from storage_lib.spark.batch import batch_reader, batch_writer
from storage_lib.spark.stream import stream_reader, stream_writer

with suppress(ImportError):  # an extra
    import storage_lib.log_store.kafka.kafka_log_store  # noqa: F401

__all__ = ["batch_reader", "batch_writer", "main", "stream_reader", "stream_writer"]


def main() -> None:
    """Serve Spark's requests for workers until it closes our standard input."""
    gc.collect()
    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
