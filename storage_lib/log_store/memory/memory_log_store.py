"""The log in memory, a public substitute for ``KafkaLogStore`` in tests, examples and first steps.

It has the same semantics and passes the same tests: records are encoded as debezium-json, any holder of a handle can
end its transaction, offsets have gaps. Stores with the same name in one process share one log.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from storage_lib.errors import (
    AlreadyExistsError,
    InvalidInputError,
    LogOffsetsExpiredError,
    NotFoundError,
    UnavailableError,
)
from storage_lib.log_store.codec.debezium_json import DebeziumJson
from storage_lib.log_store.codec.log_columns import no_columns, read_columns
from storage_lib.log_store.codec.record_log import BucketRecords
from storage_lib.log_store.log_offsets import LogOffsets, recreated_error
from storage_lib.log_store.log_store import (
    EndOutcome,
    LogBatch,
    TransactionHandle,
    WrittenRange,
)
from storage_lib.log_store.memory.memory_log import (
    MemoryBucket,
    MemoryLog,
    MemoryTransaction,
    TransactionState,
)
from storage_lib.schema.options.table_options import ChangelogMode

if TYPE_CHECKING:
    from storage_lib.io.environment import Clock
    from storage_lib.schema.table_schema import TableSchema

_TRANSACTION_TIMEOUT_MS = 900_000
_LOGS: dict[str, MemoryLog] = {}
_MADE: Counter[str] = Counter()
"""Number of logs created so far, by name."""

_LOCK = threading.Lock()


class MemoryLogStore:
    """``LogStore`` whose log lives as long as the process. Thread-safe except for transactions."""

    def __init__(
        self,
        schema: TableSchema,
        name: str,
        table_uuid: str,
        clock: Clock,
        *,
        changelog_mode: ChangelogMode = ChangelogMode.AUTO,
        retention_ms: int | None = None,
        transaction_timeout_ms: int = _TRANSACTION_TIMEOUT_MS,
    ) -> None:
        """Use the log ``name`` for one table; ``create`` creates it."""
        self._schema = schema
        self._name = name
        self._table_uuid = table_uuid
        self._clock = clock
        self._codec = DebeziumJson.for_table(schema, changelog_mode)
        self._retention_ms = retention_ms
        self._transaction_timeout_ms = transaction_timeout_ms

    def create(self) -> None:
        """See ``LogStore.create``."""
        with _LOCK:
            log = _LOGS.get(self._name)
            if log is None:
                _MADE[self._name] += 1
                # Other than that of a log of another name; the prefix is that of a catalog, and each process counts.
                log_id = f"{self._name.rpartition('/')[2]}-{_MADE[self._name]}"
                log = MemoryLog(self._table_uuid, len(self._schema.bucket_numbers), self._retention_ms, log_id)
                _LOGS[self._name] = log
        if log.table_uuid != self._table_uuid:
            message = f"log {self._name!r} exists and is another table's; choose another name with log.kafka.topic"
            raise AlreadyExistsError(message)
        bucket_count = len(self._schema.bucket_numbers)
        if len(log.buckets) != bucket_count:
            message = f"log {self._name!r} has {len(log.buckets)} partitions, the table {bucket_count} buckets"
            raise AlreadyExistsError(message)

    def drop(self) -> None:
        """See ``LogStore.drop``."""
        log = _LOGS.get(self._name)
        if log is not None and log.table_uuid != self._table_uuid:
            message = f"log {self._name!r} is another table's and was kept"
            raise NotFoundError(message)
        _LOGS.pop(self._name, None)

    def evolve(self, schema: TableSchema) -> None:
        """See ``LogStore.evolve``. Does nothing: JSON needs no preparation."""

    def description(self) -> Mapping[str, str]:
        """See ``LogStore.description``."""
        retention_ms = self.retention_ms()
        return {
            "log.system": "memory",
            "log.kafka.topic": self._name,
            "log.retention": "forever" if retention_ms is None else f"{retention_ms} ms",
        }

    def retention_ms(self) -> int | None:
        """See ``LogStore.retention_ms``."""
        return self._log().retention_ms

    def log_id(self) -> str:
        """See ``LogStore.log_id``."""
        return self._log().log_id

    def is_compacted(self) -> bool:
        """See ``RecordLog.is_compacted``."""
        return False

    def begin(self, slot: int) -> MemoryLogTransaction:
        """See ``LogStore.begin``."""
        log = self._log()
        with log.lock:
            transaction = log.begin(f"{self._table_uuid}-{slot}", self._transaction_timeout_ms)
        return MemoryLogTransaction(self, transaction)

    def open_appender(self) -> MemoryLogAppender:
        """See ``LogStore.open_appender``."""
        return MemoryLogAppender(self)

    def end(self, handle: TransactionHandle, *, commit: bool) -> EndOutcome:
        """See ``LogStore.end``."""
        log = self._log()
        with log.lock:
            return log.end(handle, commit=commit)

    def end_all(self, handles: tuple[TransactionHandle, ...], *, commit: bool) -> tuple[EndOutcome, ...]:
        """See ``LogStore.end_all``."""
        return tuple(self.end(handle, commit=commit) for handle in handles)

    def is_committed(self, written: WrittenRange) -> bool:
        """See ``LogStore.is_committed``."""
        log = self._log()
        last = written.next_offset - 1
        with log.lock:
            bucket = self._bucket(log, written.bucket)
            if last < bucket.start_offset:
                raise self._expired(written.bucket, last, bucket.start_offset)
            owners = [s.transaction for s in bucket.stretches if s.columns.offsets[0] <= last <= s.columns.offsets[-1]]
            return any(owner.state is TransactionState.COMMITTED for owner in owners)

    def earliest_offsets(self) -> LogOffsets:
        """See ``LogStore.earliest_offsets``."""
        log = self._log()
        with log.lock:
            return LogOffsets({bucket: held.start_offset for bucket, held in enumerate(log.buckets)}, log.log_id)

    def latest_offsets(self) -> LogOffsets:
        """See ``LogStore.latest_offsets``."""
        log = self._log()
        with log.lock:
            return LogOffsets({bucket: log.stable_offset(bucket) for bucket in range(len(log.buckets))}, log.log_id)

    def offsets_at(self, timestamp_millis: int) -> LogOffsets:
        """See ``LogStore.offsets_at``."""
        log = self._log()
        found: dict[int, int] = {}
        with log.lock:
            for bucket, held in enumerate(log.buckets):
                stable = log.stable_offset(bucket)
                late = [s.columns for s in held.stretches if s.columns.timestamps[-1] >= timestamp_millis]
                first = late[0].offsets[np.argmax(late[0].timestamps >= timestamp_millis)] if late else stable
                found[bucket] = min(int(first), stable)
        return LogOffsets(found, log.log_id)

    def read(
        self,
        start: LogOffsets,
        end: LogOffsets | None = None,
        *,
        buckets: tuple[int, ...] | None = None,
    ) -> Iterator[LogBatch]:
        """See ``LogStore.read``."""
        return self._decoded(self.records(start, end, buckets=buckets))

    def records(
        self,
        start: LogOffsets,
        end: LogOffsets | None = None,
        *,
        buckets: tuple[int, ...] | None = None,
    ) -> Iterator[BucketRecords]:
        """See ``RecordLog.records``."""
        log = self._log()
        asked = tuple(range(len(log.buckets))) if buckets is None else buckets
        if not start.is_of(log.log_id):
            raise recreated_error(self._name)
        latest = self.latest_offsets()
        stops: dict[int, int] = {}
        for bucket in asked:
            held, position = self._bucket(log, bucket), start.of(bucket)
            if not held.start_offset <= position <= held.end_offset:
                raise self._expired(bucket, position, held.start_offset)
            stops[bucket] = max(position, latest.of(bucket) if end is None else end.of(bucket))
            if stops[bucket] > max(position, latest.of(bucket)):
                message = (
                    f"log {self._name!r}, bucket {bucket}: asked to read up to offset {stops[bucket]}, but it is "
                    f"committed up to {latest.of(bucket)} only; wait until the open transaction is ended"
                )
                raise UnavailableError(message)
        return self._records(log, start, stops)

    def close(self) -> None:
        """Do nothing: the log outlives its stores."""

    def expire(self, before: LogOffsets) -> None:
        """Delete all records below ``before``, as retention would. Not part of ``LogStore``."""
        log = self._log()
        with log.lock:
            for bucket in range(len(log.buckets)):
                log.expire(bucket, before.of(bucket))

    def _decoded(self, records: Iterator[BucketRecords]) -> Iterator[LogBatch]:
        for each in records:
            yield read_columns(
                self._codec, each.columns, log=self._name, bucket=each.bucket, next_offset=each.next_offset
            )

    def _records(self, log: MemoryLog, start: LogOffsets, stops: Mapping[int, int]) -> Iterator[BucketRecords]:
        for bucket, stop in stops.items():
            position = start.of(bucket)
            with log.lock:
                stretches = list(log.buckets[bucket].stretches)
            for stretch in stretches:
                columns = stretch.columns.between(position, stop)
                if len(columns) and stretch.transaction.state is TransactionState.COMMITTED:
                    position = int(columns.offsets[-1]) + 1
                    yield BucketRecords(bucket=bucket, columns=columns, next_offset=position)
            if position < stop or position == start.of(bucket):
                yield BucketRecords(bucket=bucket, columns=no_columns(), next_offset=max(position, stop))

    def _log(self) -> MemoryLog:
        log = _LOGS.get(self._name)
        if log is None or log.table_uuid != self._table_uuid:
            message = f"log {self._name!r} of this table does not exist; create_table of the catalog creates it"
            raise NotFoundError(message)
        with log.lock:
            log.let_time_pass(self._clock.now_millis())
        return log

    def _bucket(self, log: MemoryLog, bucket: int) -> MemoryBucket:
        if bucket >= len(log.buckets):
            message = f"log {self._name!r} has {len(log.buckets)} partitions, but bucket {bucket} was asked for"
            raise InvalidInputError(message)
        return log.buckets[bucket]

    def _expired(self, bucket: int, offset: int, earliest: int) -> LogOffsetsExpiredError:
        return LogOffsetsExpiredError(
            f"log {self._name!r}, bucket {bucket}: offset {offset} is no longer held (oldest: {earliest}), or not yet "
            "written: was the log recreated?; read the files from a snapshot again (log.scan=full), and raise "
            "log.retention if this happens often"
        )


class MemoryLogTransaction:
    """``LogTransaction`` of one slot in memory."""

    def __init__(self, store: MemoryLogStore, transaction: MemoryTransaction) -> None:
        """Write under ``transaction``, which ``MemoryLogStore.begin`` opened."""
        self._store = store
        self._transaction = transaction
        self._ranges: dict[int, WrittenRange] = {}

    @property
    def handle(self) -> TransactionHandle:
        """See ``LogTransaction.handle``."""
        return self._transaction.handle

    def write(
        self,
        bucket: int,
        rows: pa.RecordBatch,
        kinds: pa.Array,
        *,
        repairs: int | None = None,
    ) -> None:
        """See ``LogTransaction.write``."""
        log = self._store._log()  # noqa: SLF001  the transaction is a part of its store
        now = self._store._clock.now_millis()  # noqa: SLF001
        for changes in self._store._codec.encode(rows, kinds):  # noqa: SLF001
            repaired = pa.array([repairs], pa.int64()).take(pa.array(np.zeros(len(changes.values), np.int8)))
            with log.lock:
                first, stop = log.append(
                    self._transaction,
                    bucket,
                    changes.keys,
                    changes.values,
                    repaired,
                    now,
                )
            _extend(self._ranges, bucket, first, stop)

    def flush(self) -> tuple[WrittenRange, ...]:
        """See ``LogTransaction.flush``."""
        return tuple(self._ranges[bucket] for bucket in sorted(self._ranges))

    def abort(self) -> None:
        """See ``LogTransaction.abort``."""
        self._store.end(self.handle, commit=False)


class MemoryLogAppender:
    """``LogAppender`` for one write in memory."""

    def __init__(self, store: MemoryLogStore) -> None:
        """Write to the log of ``store``."""
        self._store = store
        self._ranges: dict[int, WrittenRange] = {}

    def write(self, bucket: int, rows: pa.RecordBatch, kinds: pa.Array) -> None:
        """See ``LogAppender.write``."""
        log = self._store._log()  # noqa: SLF001  the appender is a part of its store
        now = self._store._clock.now_millis()  # noqa: SLF001
        for changes in self._store._codec.encode(rows, kinds):  # noqa: SLF001
            with log.lock:
                first, stop = log.append_visible(bucket, changes.keys, changes.values, now)
            _extend(self._ranges, bucket, first, stop)

    def finish(self) -> tuple[WrittenRange, ...]:
        """See ``LogAppender.finish``."""
        return tuple(self._ranges[bucket] for bucket in sorted(self._ranges))

    def give_up(self) -> None:
        """See ``LogAppender.give_up``. Does nothing: nothing is in flight."""


def _extend(ranges: dict[int, WrittenRange], bucket: int, first: int, stop: int) -> None:
    earlier = ranges.get(bucket)
    ranges[bucket] = WrittenRange(
        bucket=bucket,
        first_offset=earlier.first_offset if earlier else first,
        next_offset=stop,
    )
