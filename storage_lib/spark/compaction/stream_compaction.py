"""Compaction during a stream: a thread of the driver that starts a low-priority job when one is due."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from storage_lib.spark.compaction.distributed_compaction import compact_if_due
from storage_lib.spark.data_source.stream_background import StreamBackground

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

_PAUSES_MAX = 16


class StreamCompaction(StreamBackground):
    """Background thread that compacts the table every ``interval_seconds``, in separate snapshots.

    The table's strategy picks the runs. A lost race with another commit is ignored, because the next round tries again.
    Any other error stays in ``error`` until a round succeeds and does not stop the stream; each consecutive error
    doubles the pause, up to 16 intervals.
    """

    def __init__(self, spark: SparkSession, table: DynamicTable, *, interval_seconds: float) -> None:
        super().__init__(thread_name="stream-compaction", interval_seconds=interval_seconds)
        self._spark = spark
        self._table = table

    def stop(self, timeout_seconds: float = 30.0) -> None:
        """Ask the thread to end after its current compaction, and wait for it."""
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
