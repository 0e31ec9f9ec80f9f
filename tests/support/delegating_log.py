"""Log that delegates every call to another; base class of logs that inject faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.log_store.log_store import (
    EndOutcome,
    LogAppender,
    LogBatch,
    LogStore,
    LogTransaction,
    TransactionHandle,
    WrittenRange,
)
from storage_lib.schema.table_schema import TableSchema


class DelegatingLog:
    """Delegates to another log. ``end`` calls ``end_all``, so one override covers both."""

    def __init__(self, delegate: LogStore) -> None:
        self.delegate = delegate

    def create(self) -> None:
        self.delegate.create()

    def drop(self) -> None:
        self.delegate.drop()

    def evolve(self, schema: TableSchema) -> None:
        self.delegate.evolve(schema)

    def description(self) -> Mapping[str, str]:
        return self.delegate.description()

    def retention_ms(self) -> int | None:
        return self.delegate.retention_ms()

    def log_id(self) -> str | None:
        return self.delegate.log_id()

    def begin(self, slot: int) -> LogTransaction:
        return self.delegate.begin(slot)

    def open_appender(self) -> LogAppender:
        return self.delegate.open_appender()

    def end(self, handle: TransactionHandle, *, commit: bool) -> EndOutcome:
        (outcome,) = self.end_all((handle,), commit=commit)
        return outcome

    def end_all(self, handles: tuple[TransactionHandle, ...], *, commit: bool) -> tuple[EndOutcome, ...]:
        return self.delegate.end_all(handles, commit=commit)

    def is_committed(self, written: WrittenRange) -> bool:
        return self.delegate.is_committed(written)

    def earliest_offsets(self) -> LogOffsets:
        return self.delegate.earliest_offsets()

    def latest_offsets(self) -> LogOffsets:
        return self.delegate.latest_offsets()

    def offsets_at(self, timestamp_millis: int) -> LogOffsets:
        return self.delegate.offsets_at(timestamp_millis)

    def read(
        self, start: LogOffsets, end: LogOffsets | None = None, *, buckets: tuple[int, ...] | None = None
    ) -> Iterator[LogBatch]:
        return self.delegate.read(start, end, buckets=buckets)

    def close(self) -> None:
        self.delegate.close()
