"""The log's part of one task: in transactions that its driver's snapshot decides, or visible at once.

``log.consistency=transactional`` writes a ``TransactionalShare``; ``eventual`` an ``AppendedShare``; holders of the
lease there (``ingest``, an overwrite, a repair) write a ``FencedShare``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from storage_lib.errors import InvalidInputError, LeaseLostError
from storage_lib.log_store.log_store import LogAppender, LogStore, LogTransaction
from storage_lib.table.protocol.log_endings import not_in_log
from storage_lib.table.protocol.log_part import BucketTransaction
from storage_lib.table.protocol.turn import Turn, TurnLease

if TYPE_CHECKING:
    from storage_lib.io.environment import Clock


class LogShare(Protocol):
    """The log's side of one task's write. Not thread-safe."""

    def write(self, bucket: int, rows: pa.RecordBatch, kinds: pa.Array) -> None:
        """Hand on the changes of one bucket, in order; arguments and errors as ``LogTransaction.write``."""

    def flush(self) -> tuple[BucketTransaction, ...]:
        """Wait until everything is stored; what is still to be ended by the commit."""

    def abort(self) -> None:
        """Take back what can be taken back."""


class TransactionalShare:
    """One open transaction a bucket. ``turn`` tells why one was fenced, and whether this is the ``only_task``."""

    def __init__(
        self,
        *,
        table: str,
        log: LogStore,
        lease: TurnLease,
        turn: Turn | None,
        only_task: bool,
        clock: Clock,
        timeout_ms: int,
    ) -> None:
        self._table = table
        self._log = log
        self._lease = lease
        self._turn = turn
        self._only_task = only_task
        self._clock = clock
        self._timeout_seconds = timeout_ms / 1000
        self._transactions: dict[int, LogTransaction] = {}
        self._begun: dict[int, float] = {}

    def write(self, bucket: int, rows: pa.RecordBatch, kinds: pa.Array) -> None:
        """See ``LogShare.write``."""
        with self._fencing_explained(bucket):
            if bucket not in self._transactions:
                if self._turn is not None:
                    # To begin fences the holder of the slot, which may be the process that took our lease over.
                    self._lease.check(self._turn)
                self._begun[bucket] = self._clock.monotonic()
                self._transactions[bucket] = self._log.begin(bucket)
            self._transactions[bucket].write(bucket, rows, kinds)

    def flush(self) -> tuple[BucketTransaction, ...]:
        """See ``LogShare.flush``: the records are stored, but nobody sees them yet."""
        flushed: list[BucketTransaction] = []
        for bucket, transaction in self._transactions.items():
            with self._fencing_explained(bucket):
                ranges = transaction.flush()
            flushed += [BucketTransaction(handle=transaction.handle, written=written) for written in ranges]
        return tuple(flushed)

    def abort(self) -> None:
        """See ``LogShare.abort``: nobody will ever see anything of it."""
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
            if self._turn is None:
                raise
            self._lease.check(self._turn)
            if self._only_task or self._clock.monotonic() - self._begun[bucket] >= self._timeout_seconds:
                raise
            raise two_tasks_for_one_bucket(self._table, bucket) from error


class FencedShare(TransactionalShare):
    """Visible at the end of the task, unless its turn has gone to somebody else by then: no snapshot decides.

    Rows that were made of a source's records, or of the table's own, must not come behind what a later turn has made of
    the same. So the turn is looked at once more before the transactions are committed: by then they have begun, so
    the next holder of the lease ends them first (``EventualCommit``).
    """

    def flush(self) -> tuple[BucketTransaction, ...]:
        """See ``LogShare.flush``: nothing is left for a commit. ``LeaseLostError`` for a turn that was lost."""
        stored = super().flush()
        if stored and self._turn is not None:
            self._lease.check(self._turn)
            if not_in_log(self._log, stored):
                self._lease.check(self._turn)
                message = (
                    f"table {self._table}: transactions of the log in turn {self._turn.number} of {self._turn.holder} "
                    "were ended by somebody else, or timed out (log.transaction.timeout), before they were committed; "
                    "write again"
                )
                raise LeaseLostError(message)
        return ()


class AppendedShare:
    """Visible as it is stored; nothing is left for a commit to decide, and nothing can be taken back."""

    def __init__(self, log: LogStore) -> None:
        self._log = log
        self._appender: LogAppender | None = None

    def write(self, bucket: int, rows: pa.RecordBatch, kinds: pa.Array) -> None:
        """See ``LogShare.write``."""
        if self._appender is None:
            self._appender = self._log.open_appender()
        self._appender.write(bucket, rows, kinds)

    def flush(self) -> tuple[BucketTransaction, ...]:
        """See ``LogShare.flush``."""
        appender, self._appender = self._appender, None
        if appender is not None:
            appender.finish()
        return ()

    def abort(self) -> None:
        """See ``LogShare.abort``: what was stored stays, for it was seen."""
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
