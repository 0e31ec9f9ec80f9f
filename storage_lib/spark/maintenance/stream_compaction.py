"""Compaction during a stream: a thread of the driver that starts a low-priority job when one is due."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from storage_lib.spark.maintenance.distributed_compaction import compact_if_due
from storage_lib.spark.stream.beside_stream import BesideStream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

_PAUSES_MAX = 16


class StreamCompaction(BesideStream):
    """Compacts what the table's strategy picks, every ``interval_seconds``, as snapshots of its own.

    A lost race is dropped quietly: the next round looks again. Any other error stands in ``error`` until a round ends
    well, and each one in a row doubles the pause, up to sixteen times: the stream itself must go on.
    """

    def __init__(self, spark: SparkSession, table: DynamicTable, *, interval_seconds: float) -> None:
        super().__init__(thread_name="stream-compaction", interval_seconds=interval_seconds)
        self._spark = spark
        self._table = table

    def stop(self, timeout_seconds: float = 30.0) -> None:
        """Ask the thread to end after the compaction it is in, and wait for that."""
        super().stop(timeout_seconds)

    def _run(self, until: Callable[[], bool]) -> None:
        pause = self._interval_seconds
        while not self._stopping.wait(pause) and not until():
            try:
                if compact_if_due(self._spark, self._table) is not None:
                    self.snapshot_count += 1
            except Exception as error:  # noqa: BLE001  the stream continues; the error is kept for the caller
                self.error = error
                pause = min(2 * pause, _PAUSES_MAX * self._interval_seconds)
            else:
                self.error = None
                pause = self._interval_seconds
