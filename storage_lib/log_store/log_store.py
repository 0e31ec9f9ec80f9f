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
    """Names one open transaction, so that any process can end it; travels in commit messages and snapshots."""

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
    (the -U and +U of one record share theirs); ``timestamps`` int64 epoch ms; ``repairs`` int64, null but for records
    that repair a snapshot (its id). ``next_offset`` is where to read on: past control records too. All arrays have
    the length of ``rows``.
    """

    bucket: int
    rows: pa.RecordBatch
    kinds: pa.Array
    offsets: pa.Array
    timestamps: pa.Array
    repairs: pa.Array
    next_offset: int


class LogTransaction(Protocol):
    """Writes of one slot that become visible together, or never. Not thread-safe."""

    @property
    def handle(self) -> TransactionHandle:
        """Known from the start, so that it can be recorded before the first record is flushed."""

    def write(self, bucket: int, rows: pa.RecordBatch, kinds: pa.Array, *, repairs: int | None = None) -> None:
        """Append the changes to ``bucket``, in order.

        ``rows`` has the table's columns, ``kinds`` int8. ``repairs`` marks each record with the header
        ``repairs-snapshot``. Raises ``InvalidInputError`` for a record larger than the log takes,
        ``LeaseLostError`` when a successor has fenced this transaction, ``UnavailableError`` for outages.
        """

    def flush(self) -> tuple[WrittenRange, ...]:
        """Wait until everything written is stored (acks of all replicas); the ranges by bucket.

        The transaction stays open. Without a write, an empty tuple.
        """

    def abort(self) -> None:
        """Discard everything; does nothing if it has ended already."""


class LogAppender(Protocol):
    """Writes that are visible as soon as they are stored, and can't be undone. Not thread-safe; for a single write.

    A write that fails midway or is repeated stores its records at least once. Any number of appenders may
    write to one bucket at a time.
    """

    def write(self, bucket: int, rows: pa.RecordBatch, kinds: pa.Array) -> None:
        """Append the changes to ``bucket``, in order; arguments and errors as ``LogTransaction.write``."""

    def finish(self) -> tuple[WrittenRange, ...]:
        """Wait until everything written is stored (acks of all replicas); the ranges by bucket.

        Records of other appenders may lie in between. ``UnavailableError`` when it is not known what was stored.
        """

    def give_up(self) -> None:
        """End without waiting for outstanding responses; stored records stay."""


class LogStore(Protocol):
    """The changelog of one table."""

    def create(self) -> None:
        """Create the log; ``AlreadyExistsError`` if another table's log has the name. Repeatable."""

    def drop(self) -> None:
        """Delete the log, if it exists. ``NotFoundError`` for one that is not this table's, which is kept."""

    def evolve(self, schema: TableSchema) -> None:
        """Prepare for records of another version of the table's schema, which may not follow. Repeatable.

        Raises ``InvalidInputError`` for a schema that the log can't represent, ``UnavailableError``.
        """

    def description(self) -> Mapping[str, str]:
        """For DESCRIBE: ``log.system``, ``log.kafka.topic``, ``log.retention`` (effective), … ; no secrets."""

    def log_id(self) -> str | None:
        """Id of this log, which changes when the log is recreated under its name. None if the system has no such ids.

        May be a second old. Raises ``NotFoundError`` if there is no log, ``UnavailableError``.
        """

    def begin(self, slot: int) -> LogTransaction:
        """Open the transaction of ``slot``, aborting a dangling one of the same slot and fencing its writer."""

    def open_appender(self) -> LogAppender:
        """Write outside of any transaction."""

    def end(self, handle: TransactionHandle, *, commit: bool) -> EndOutcome:
        """End a transaction from anywhere; when it returns ``ENDED``, readers see what was asked for.

        Ending it twice the same way is ``ENDED`` both times, until a successor begins: then it is ``FENCED``.
        """

    def end_all(self, handles: tuple[TransactionHandle, ...], *, commit: bool) -> tuple[EndOutcome, ...]:
        """End several transactions in parallel."""

    def is_committed(self, written: WrittenRange) -> bool:
        """Whether a reader of committed records sees the records of this range (looks into the log).

        ``LogOffsetsExpiredError`` if the log no longer holds them.
        """

    def earliest_offsets(self) -> LogOffsets:
        """The oldest offset still held, for every bucket."""

    def latest_offsets(self) -> LogOffsets:
        """Past the last committed record (Kafka's last stable offset), for every bucket."""

    def offsets_at(self, timestamp_millis: int) -> LogOffsets:
        """The first record at or after that time for every bucket; the latest where there is none."""

    def retention_ms(self) -> int | None:
        """The time for which records are retained; None: for ever."""

    def read(
        self, start: LogOffsets, end: LogOffsets | None = None, *, buckets: tuple[int, ...] | None = None
    ) -> Iterator[LogBatch]:
        """Committed changes from ``start`` up to, not including, ``end`` (default: the latest now), then stop.

        ``LogOffsetsExpiredError`` if ``start`` is no longer held, lies beyond the log or is of another one;
        ``UnavailableError`` if ``end`` is not committed yet. Bounded memory: a few batches per bucket.
        Batches of one bucket come in order. A last batch without rows may come just to advance ``next_offset``:
        after the generator ends, every bucket of the request has been reported up to its end.
        """

    def close(self) -> None:
        """Release connections; the store may not be used afterwards."""
