"""Interface of a dynamic table's log, implemented by ``KafkaLogStore`` and ``MemoryLogStore``.

One log partition per bucket. Records become visible transaction by transaction: the holder of the slot opens and
writes a ``LogTransaction``; any process that has its ``TransactionHandle`` can end it, even after the writer has
crashed. Offsets need not be dense: ending a transaction may use one up.
A ``LogAppender`` writes outside of any transaction; its records become visible as they are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from storage_lib.log_store.log_offsets import LogOffsets

if TYPE_CHECKING:
    from storage_lib.schema.table_schema import TableSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionHandle:
    """Identifies an open transaction so that any process can end it; stored in commit messages and snapshots."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


class EndOutcome(Enum):
    """Outcome of a request to end a transaction."""

    ENDED = "ended"
    """The transaction has ended as requested, now or earlier."""
    FENCED = "fenced"
    """Another process or a timeout has already ended it; only the log shows whether its records are visible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRange:
    """Records that one transaction wrote into one bucket: offsets from ``first_offset`` to before ``next_offset``."""

    bucket: int
    first_offset: int
    next_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBatch:
    """Changes read from one bucket, in log order.

    ``rows`` has the table's columns; ``kinds`` the int8 codes of ``RowKind``; ``offsets`` int64, ascending
    (the -U and +U of one record share an offset); ``timestamps`` int64 epoch ms; ``repairs`` int64, the id of the
    snapshot that a record repairs, null for other records. The next read starts at ``next_offset``, which lies past
    control records as well. All arrays have the length of ``rows``.
    """

    bucket: int
    rows: pa.RecordBatch
    kinds: pa.Array
    offsets: pa.Array
    timestamps: pa.Array
    repairs: pa.Array
    next_offset: int


class LogTransaction(Protocol):
    """Writes of one slot, which become visible together or not at all. Not thread-safe."""

    @property
    def handle(self) -> TransactionHandle:
        """Handle of the transaction. Available before the first flush, so that a caller can record it first."""

    def write(self, bucket: int, rows: pa.RecordBatch, kinds: pa.Array, *, repairs: int | None = None) -> None:
        """Append the changes to ``bucket``, in order.

        ``rows`` has the table's columns, ``kinds`` int8. ``repairs`` marks each record with the header
        ``repairs-snapshot``. Raises ``InvalidInputError`` for a record that exceeds the log's size limit,
        ``LeaseLostError`` when a successor has fenced this transaction, ``UnavailableError`` for outages.
        """

    def flush(self) -> tuple[WrittenRange, ...]:
        """Wait until all replicas have stored everything written; return the ranges by bucket.

        The transaction stays open. Returns an empty tuple if nothing was written.
        """

    def abort(self) -> None:
        """Discard everything written; do nothing if the transaction has already ended."""


class LogAppender(Protocol):
    """Writes that are visible as soon as they are stored and can't be undone. Not thread-safe; serves a single write.

    Delivery is at least once: a write that fails midway and is retried may store records twice. Several appenders may
    write to a bucket concurrently.
    """

    def write(self, bucket: int, rows: pa.RecordBatch, kinds: pa.Array) -> None:
        """Append the changes to ``bucket``, in order; arguments and errors as ``LogTransaction.write``."""

    def finish(self) -> tuple[WrittenRange, ...]:
        """Wait until all replicas have stored everything written; return the ranges by bucket.

        A range may include records of other appenders. Raises ``UnavailableError`` if the outcome is unknown.
        """

    def give_up(self) -> None:
        """Abandon the write without reporting its outcome; records that were stored stay."""


class LogStore(Protocol):
    """The changelog of one table."""

    def create(self) -> None:
        """Create the log. Idempotent. Raises ``AlreadyExistsError`` if the name belongs to another table's log."""

    def drop(self) -> None:
        """Delete the log if it exists. Raises ``NotFoundError``, and keeps the log, if it is another table's."""

    def evolve(self, schema: TableSchema) -> None:
        """Prepare for records of another version of the table's schema, which may never be written. Idempotent.

        Raises ``InvalidInputError`` for a schema that the log can't represent, ``UnavailableError``.
        """

    def description(self) -> Mapping[str, str]:
        """Properties for DESCRIBE: ``log.system``, ``log.kafka.topic``, effective ``log.retention``, …; no secrets."""

    def log_id(self) -> str | None:
        """Id of this log, which changes when the log is recreated under its name. None if the system has no such ids.

        May be up to a second stale. Raises ``NotFoundError`` if the log does not exist, ``UnavailableError``.
        """

    def begin(self, slot: int) -> LogTransaction:
        """Open the transaction of ``slot``; abort an unfinished one of the same slot and fence its writer."""

    def open_appender(self) -> LogAppender:
        """Open an appender, which writes outside of any transaction."""

    def end(self, handle: TransactionHandle, *, commit: bool) -> EndOutcome:
        """Commit or abort a transaction from any process; ``ENDED`` means that readers see the requested outcome.

        Repeating a request returns ``ENDED`` again, until a successor begins; from then on it returns ``FENCED``.
        """

    def end_all(self, handles: tuple[TransactionHandle, ...], *, commit: bool) -> tuple[EndOutcome, ...]:
        """End several transactions in parallel."""

    def is_committed(self, written: WrittenRange) -> bool:
        """Whether a reader of committed records sees the records of this range. Reads the log.

        Raises ``LogOffsetsExpiredError`` if the log no longer holds them, ``InvalidInputError`` for a bucket that it
        lacks.
        """

    def earliest_offsets(self) -> LogOffsets:
        """The oldest offset still held, for every bucket."""

    def latest_offsets(self) -> LogOffsets:
        """The offset after the last committed record (Kafka's last stable offset), for every bucket."""

    def offsets_at(self, timestamp_millis: int) -> LogOffsets:
        """First offset at or after that time for every bucket; the latest offset if there is no such record."""

    def retention_ms(self) -> int | None:
        """Retention time of records in milliseconds; None if they are kept forever."""

    def read(
        self, start: LogOffsets, end: LogOffsets | None = None, *, buckets: tuple[int, ...] | None = None
    ) -> Iterator[LogBatch]:
        """Yield committed changes from ``start`` to ``end``, exclusive (default: the latest offsets at the call).

        Raises ``LogOffsetsExpiredError`` if ``start`` is no longer held, lies beyond the log or belongs to another
        log; ``UnavailableError`` if ``end`` is not committed yet. Holds at most a few batches per bucket in memory.
        Batches of one bucket come in order. The last one may have no rows and only advance ``next_offset``:
        after the generator ends, every bucket of the request has been reported up to its end.
        """

    def close(self) -> None:
        """Release connections; the store may not be used afterwards."""
