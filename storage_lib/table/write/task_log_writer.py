"""Writers of one task's rows to the log.

``TransactionalLogWriter``: ``log.consistency=transactional``; the driver's snapshot commits its transactions.
``AppendingLogWriter``: ``log.consistency=eventual``; rows are visible at once. ``FencedLogWriter``: writes under the
lease of such a table (``ingest``, an overwrite, a repair).
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
    """Writes one task's rows to the log. Not thread-safe."""

    def write(self, bucket: int, rows: pa.RecordBatch, kinds: pa.Array) -> None:
        """Write changes of one bucket, in order; arguments and errors as for ``LogTransaction.write``."""

    def flush(self) -> tuple[BucketTransaction, ...]:
        """Wait until all records are stored; return the transactions that the commit must end."""

    def abort(self) -> None:
        """Undo the writes as far as possible."""


class TransactionalLogWriter:
    """Keeps one open transaction per bucket. ``lease`` and ``only_task`` help explain why one was fenced."""

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
                    # Beginning a transaction fences the slot's holder, which may be the process that took our lease
                    # over.
                    self._leases.check(self._lease)
                self._begun[bucket] = self._clock.monotonic()
                self._transactions[bucket] = self._log.begin(bucket)
            self._transactions[bucket].write(bucket, rows, kinds)

    def flush(self) -> tuple[BucketTransaction, ...]:
        """See ``TaskLogWriter.flush``: the records are stored but not visible yet."""
        flushed: list[BucketTransaction] = []
        for bucket, transaction in self._transactions.items():
            with self._fencing_explained(bucket):
                ranges = transaction.flush()
            flushed += [BucketTransaction(handle=transaction.handle, written=written) for written in ranges]
        return tuple(flushed)

    def abort(self) -> None:
        """See ``TaskLogWriter.abort``: none of the records become visible."""
        for transaction in self._transactions.values():
            transaction.abort()

    @contextmanager
    def _fencing_explained(self, bucket: int) -> Iterator[None]:
        """Raise the error for the reason why a task's log transaction was fenced.

        A later lease took over, the transaction timed out at the broker, or a stalled former lease holder began a
        transaction: the caller retries. Or another task of the same write has rows of the same bucket, which only the
        engine's distribution of rows can fix.
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
    """Makes rows visible at the end of the task, without a snapshot, if the lease is still held.

    Rows computed from records of a source or of the table must not follow rows that a later lease holder computed from
    the same records. So the lease is checked again before the transactions are committed. They began before that check,
    so the next holder ends them first (``EventualCommit``).
    """

    def flush(self) -> tuple[BucketTransaction, ...]:
        """Commit the transactions; return none. Raises ``LeaseLostError`` for a lost lease."""
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
    """Makes rows visible as they are stored; a commit has nothing to end, and nothing can be undone."""

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
        """See ``TaskLogWriter.abort``: stored records stay, because readers may have seen them."""
        appender, self._appender = self._appender, None
        if appender is not None:
            appender.give_up()


def two_tasks_for_one_bucket(table: str, bucket: int) -> InvalidInputError:
    """Return the error for a write that was not distributed by bucket."""
    message = (
        f"table {table}: two tasks of one write have rows of bucket {bucket}, so their order in the log would be "
        "arbitrary. Distribute the rows by bucket: use storage_lib.spark.write(df, table) or "
        "write_stream(df, table, ...) in place of df.write"
    )
    return InvalidInputError(message)
