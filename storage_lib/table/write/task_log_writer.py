"""Writers of one task's rows to the log.

``TransactionalLogWriter``: ``log.consistency=transactional``; the driver's snapshot decides about its transactions.
``AppendingLogWriter``: ``log.consistency=eventual``; rows are visible at once.
``FencedLogWriter``: writes under the lease of such a table (``ingest``, an overwrite, a repair).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from storage_lib.errors import InvalidInputError, LeaseLostError
from storage_lib.log_store.log_store import LogAppender, LogStore, LogTransaction
from storage_lib.table.protocol.lease import Lease, TableLeases
from storage_lib.table.protocol.log_endings import not_in_log
from storage_lib.table.protocol.snapshot_log_properties import BucketTransaction

if TYPE_CHECKING:
    from storage_lib.io.environment import Clock


class TaskLogWriter(Protocol):
    """The log's side of one task's write. Not thread-safe."""

    def write(self, bucket: int, rows: pa.RecordBatch, kinds: pa.Array) -> None:
        """Hand on the changes of one bucket, in order; arguments and errors as ``LogTransaction.write``."""

    def flush(self) -> tuple[BucketTransaction, ...]:
        """Wait until everything is stored; what is still to be ended by the commit."""

    def abort(self) -> None:
        """Take back what can be taken back."""


class TransactionalLogWriter:
    """One open transaction a bucket. ``lease`` tells why one was fenced, and whether this is the ``only_task``."""

    def __init__(
        self,
        *,
        table: str,
        log: LogStore,
        leases: TableLeases,
        lease: Lease | None,
        only_task: bool,
        clock: Clock,
        timeout_ms: int,
    ) -> None:
        self._table = table
        self._log = log
        self._leases = leases
        self._lease = lease
        self._only_task = only_task
        self._clock = clock
        self._timeout_seconds = timeout_ms / 1000
        self._transactions: dict[int, LogTransaction] = {}
        self._begun: dict[int, float] = {}

    def write(self, bucket: int, rows: pa.RecordBatch, kinds: pa.Array) -> None:
        """See ``TaskLogWriter.write``."""
        with self._fencing_explained(bucket):
            if bucket not in self._transactions:
                if self._lease is not None:
                    # To begin fences the holder of the slot, which may be the process that took our lease over.
                    self._leases.check(self._lease)
                self._begun[bucket] = self._clock.monotonic()
                self._transactions[bucket] = self._log.begin(bucket)
            self._transactions[bucket].write(bucket, rows, kinds)

    def flush(self) -> tuple[BucketTransaction, ...]:
        """See ``TaskLogWriter.flush``: the records are stored, but nobody sees them yet."""
        flushed: list[BucketTransaction] = []
        for bucket, transaction in self._transactions.items():
            with self._fencing_explained(bucket):
                ranges = transaction.flush()
            flushed += [BucketTransaction(handle=transaction.handle, written=written) for written in ranges]
        return tuple(flushed)

    def abort(self) -> None:
        """See ``TaskLogWriter.abort``: nobody will ever see anything of it."""
        for transaction in self._transactions.values():
            transaction.abort()

    @contextmanager
    def _fencing_explained(self, bucket: int) -> Iterator[None]:
        """Tell apart the reasons for which a task may find its log transaction fenced.

        A later lease took over; or the broker's time limit is over; or a process that was paused since before our lease
        has begun a transaction of his own: all to be tried again. Or, if there are other tasks, one of the same write
        has rows of the same bucket; only the engine's distribution can mend that.
        """
        try:
            yield
        except LeaseLostError as error:
            if self._lease is None:
                raise
            self._leases.check(self._lease)
            if self._only_task or self._clock.monotonic() - self._begun[bucket] >= self._timeout_seconds:
                raise
            raise two_tasks_for_one_bucket(self._table, bucket) from error


class FencedLogWriter(TransactionalLogWriter):
    """Rows become visible at the end of the task if its lease is still held; no snapshot decides.

    Rows computed from a source's records, or from the table's own, must not follow rows that a later holder of the
    lease computed from the same. So the lease is checked again before the transactions are committed: they began before
    that check, so the next holder ends them first (``EventualCommit``).
    """

    def flush(self) -> tuple[BucketTransaction, ...]:
        """See ``TaskLogWriter.flush``: nothing is left for a commit. ``LeaseLostError`` for a lost lease."""
        stored = super().flush()
        if stored and self._lease is not None:
            self._leases.check(self._lease)
            if not_in_log(self._log, stored):
                self._leases.check(self._lease)
                message = (
                    f"table {self._table}: the log's transactions under lease {self._lease.number} of "
                    f"{self._lease.holder} were ended by another writer, or timed out (log.transaction.timeout), "
                    "before they were committed; write again"
                )
                raise LeaseLostError(message)
        return ()


class AppendingLogWriter:
    """Visible as it is stored; nothing is left for a commit to decide, and nothing can be taken back."""

    def __init__(self, log: LogStore) -> None:
        self._log = log
        self._appender: LogAppender | None = None

    def write(self, bucket: int, rows: pa.RecordBatch, kinds: pa.Array) -> None:
        """See ``TaskLogWriter.write``."""
        if self._appender is None:
            self._appender = self._log.open_appender()
        self._appender.write(bucket, rows, kinds)

    def flush(self) -> tuple[BucketTransaction, ...]:
        """See ``TaskLogWriter.flush``."""
        appender, self._appender = self._appender, None
        if appender is not None:
            appender.finish()
        return ()

    def abort(self) -> None:
        """See ``TaskLogWriter.abort``: what was stored stays, for it was seen."""
        appender, self._appender = self._appender, None
        if appender is not None:
            appender.give_up()


def two_tasks_for_one_bucket(table: str, bucket: int) -> InvalidInputError:
    """The refusal of a write that was not distributed by bucket."""
    message = (
        f"table {table}: two tasks of one write have rows of bucket {bucket}, so their order in the log would be "
        "arbitrary. Distribute the rows by bucket: use storage_lib.spark.write(df, table) or "
        "write_stream(df, table, ...) in place of df.write"
    )
    return InvalidInputError(message)
