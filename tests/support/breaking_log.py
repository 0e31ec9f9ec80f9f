"""A log that breaks where a test says: dies before it ends transactions, or loses them after their snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.log_store.log_store import (
    EndOutcome,
    LogBatch,
    LogStore,
    LogTransaction,
    TransactionHandle,
    WrittenRange,
)
from tests.support.faulty_file_io import SimulatedCrash


class BreakingLog:
    """Passes everything on to ``delegate``, but for what is switched on.

    ``dies_before_commit``: the process dies when it is about to commit transactions. ``loses_next_commits``: so many
    commits find that somebody aborted their transactions a moment before, as a broker's time-out does.
    """

    def __init__(self, delegate: LogStore) -> None:
        self.delegate = delegate
        self.dies_before_commit = False
        self.loses_next_commits = 0

    def create(self) -> None:
        self.delegate.create()

    def drop(self) -> None:
        self.delegate.drop()

    def description(self) -> Mapping[str, str]:
        return self.delegate.description()

    def begin(self, slot: int) -> LogTransaction:
        return self.delegate.begin(slot)

    def end(self, handle: TransactionHandle, *, commit: bool) -> EndOutcome:
        (outcome,) = self.end_all((handle,), commit=commit)
        return outcome

    def end_all(self, handles: tuple[TransactionHandle, ...], *, commit: bool) -> tuple[EndOutcome, ...]:
        if commit and self.dies_before_commit:
            raise SimulatedCrash
        if commit and handles and self.loses_next_commits:
            self.loses_next_commits -= 1
            self.delegate.end_all(handles, commit=False)
            return tuple(EndOutcome.FENCED for _ in handles)
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
