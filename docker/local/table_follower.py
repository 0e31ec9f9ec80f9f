"""Reads a table's stream in a thread and records when each change becomes readable."""

from __future__ import annotations

import threading
import time

import polars as pl
import pyarrow as pa

from storage_lib import DynamicTable, UnavailableError

__all__ = ["TableFollower"]

_POLL_SECONDS = 0.02


class TableFollower:
    """Reads a table's content and all later changes; ``changes`` are in order of arrival."""

    def __init__(self, table: DynamicTable) -> None:
        self._table = table
        self._received: list[tuple[float, pa.Table]] = []
        self._count = 0
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._follow, name="table-follower", daemon=True)

    def start(self) -> TableFollower:
        """Start reading, from the table's current content on."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop reading; keeps the changes read so far."""
        self._stop.set()
        self._thread.join()

    @property
    def count(self) -> int:
        """Number of changes read so far; raises the reader's error if it failed."""
        if self._failure is not None:
            raise self._failure
        return self._count

    def wait_for(self, count: int, *, timeout_seconds: float, progress: object = None) -> None:
        """Wait until ``count`` changes have been read; raises TimeoutError with the number read."""
        deadline = time.monotonic() + timeout_seconds
        while self.count < count:
            if time.monotonic() > deadline:
                message = f"only {self.count} of {count} changes were readable after {timeout_seconds:g} s"
                raise TimeoutError(message)
            if callable(progress):
                progress(self.count)
            time.sleep(0.1)

    def changes(self, *, since: int = 0) -> pl.DataFrame:
        """Return the changes after the first ``since``: table columns, ``_row_kind`` and ``readable_at`` (seconds)."""
        frames = [pl.DataFrame(rows).with_columns(pl.lit(at).alias("readable_at")) for at, rows in list(self._received)]
        return pl.concat(frames).slice(since)

    def _follow(self) -> None:
        source = self._table.stream(startup="full")
        while not self._stop.is_set():
            try:
                rows = source.poll()
            except UnavailableError:
                continue
            except BaseException as error:  # noqa: BLE001  raised to the waiting caller
                self._failure = error
                return
            if rows is None or not rows.num_rows:
                time.sleep(_POLL_SECONDS)
                continue
            self._received.append((time.time(), rows))
            self._count += rows.num_rows
