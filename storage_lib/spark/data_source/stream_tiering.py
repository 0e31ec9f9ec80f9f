"""Tiering during a stream that writes to the log first: a thread of the driver writes the files at an interval."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from storage_lib.errors import RetryableError
from storage_lib.spark.data_source.stream_background import StreamBackground

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable

_LOOK_SECONDS = 1.0
_OVERDUE_INTERVALS = 2


class StreamTiering(StreamBackground):
    """Background thread that tiers the log into files every ``interval_seconds``, and once more when the stream ends.

    The error of a failed round stays in ``error`` until a round succeeds. The next round reads the same records again.
    ``compacts``: each round also compacts, in this process; else another thread does.
    """

    def __init__(
        self, table: DynamicTable, commit_user: str, *, interval_seconds: float, compacts: bool = False
    ) -> None:
        super().__init__(thread_name="stream-tiering", interval_seconds=interval_seconds)
        self._table = table
        self._commit_user = f"{commit_user}-tier-log"
        self._compacts = compacts

    def stop(self, timeout_seconds: float = 60.0) -> None:
        """Ask the thread to tier once more and end, and wait for it."""
        super().stop(timeout_seconds)

    def _run(self, until: Callable[[], bool]) -> None:
        waited, is_over = 0.0, False
        while not is_over:
            pause = min(_LOOK_SECONDS, self._interval_seconds)
            is_over = self._stopping.wait(pause) or until()
            waited += pause
            if is_over or waited >= self._interval_seconds:
                waited = 0.0
                self._tier()

    def _tier(self) -> None:
        try:
            if self._table.maintenance.tier_log(compact=self._compacts, commit_user=self._commit_user) is not None:
                self.snapshot_count += 1
        except Exception as error:  # noqa: BLE001  the stream continues; the error is kept for the caller
            self.error = error
        else:
            self.error = None


def tier_if_overdue(table: DynamicTable) -> None:
    """Tier the log after a micro-batch if the newest snapshot is older than two tiering intervals.

    For streams that ``write_stream`` did not start, which have no tiering thread. Ignores retryable errors: the next
    micro-batch tries again.
    """
    newest = table.inspect.latest_snapshot()
    now = table.environment.clock.now_millis()
    if newest is not None and now - newest.time_millis < _OVERDUE_INTERVALS * table.options.log_tier_interval_ms:
        return
    with suppress(RetryableError):
        table.maintenance.tier_log(compact=False)
