"""Interface of logs that are read record by record, before anything is decoded; ``LogStore`` decodes its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from storage_lib.log_store.codec.log_columns import LogColumns
    from storage_lib.log_store.log_offsets import LogOffsets


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketRecords:
    """Committed records of one bucket, in order; the next read starts at ``next_offset``."""

    bucket: int
    columns: LogColumns
    next_offset: int


class RecordLog(Protocol):
    """A log whose records are read as they are; see ``LogStore`` for the operations that it shares with it."""

    def log_id(self) -> str | None:
        """See ``LogStore.log_id``."""

    def earliest_offsets(self) -> LogOffsets:
        """See ``LogStore.earliest_offsets``."""

    def latest_offsets(self) -> LogOffsets:
        """See ``LogStore.latest_offsets``."""

    def offsets_at(self, timestamp_millis: int) -> LogOffsets:
        """See ``LogStore.offsets_at``."""

    def is_compacted(self) -> bool:
        """Whether older records of a key may be missing, or nobody may tell."""

    def records(
        self, start: LogOffsets, end: LogOffsets | None = None, *, buckets: tuple[int, ...] | None = None
    ) -> Iterator[BucketRecords]:
        """Yield records as ``LogStore.read`` yields changes; its conditions and errors apply."""
