"""An external topic that is read as changes of one table: decoded, checked, and refused records treated as asked.

records ─▶ decoder ─▶ check ─▶ refusals: fail, skip ─▶ divided at each TRUNCATE ─▶ batches
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from storage_lib.errors import CorruptFileError, InvalidInputError
from storage_lib.log_store.capture.captured_changes import CapturedChanges, Refusal
from storage_lib.log_store.external.source_settings import OnReject, OnTruncate
from storage_lib.log_store.log_offsets import LogOffsets

if TYPE_CHECKING:
    from storage_lib.log_store.capture.capture_decoder import CaptureDecoder
    from storage_lib.log_store.codec.log_columns import LogColumns
    from storage_lib.log_store.codec.record_log import RecordLog
    from storage_lib.log_store.external.source_settings import SourceSettings

    Check = Callable[[CapturedChanges], CapturedChanges]
    """Adds refusals of rows that do not fit the table, and takes these rows away."""

_EXCERPT_BYTES = 200
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedBatch:
    """Changes of one partition, in order. ``offsets`` (int64) are those of the rows.

    ``truncation_offset``: the record there deleted all rows of the source, before these changes. ``skipped_count``
    records were refused and skipped. The next read starts at ``next_offset``.
    """

    bucket: int
    changes: CapturedChanges
    offsets: np.ndarray
    next_offset: int
    truncation_offset: int | None = None
    skipped_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedTopic:
    """One topic with the decoder of its records; picklable."""

    name: str
    log: RecordLog
    decoder: CaptureDecoder
    settings: SourceSettings

    def read(
        self,
        start: LogOffsets,
        end: LogOffsets | None = None,
        *,
        buckets: tuple[int, ...] | None = None,
        check: Check | None = None,
    ) -> Iterator[CapturedBatch]:
        """Yield the changes between two positions, as ``LogStore.read`` does.

        A TRUNCATE starts a batch of its own. Before an error for a refused record is raised, everything before it has
        been yielded. Raises ``CorruptFileError`` for a record that can't be read, ``InvalidInputError`` for one that
        can't be applied, and for a TRUNCATE unless ``source.on-truncate`` allows it.
        """
        for records in self.log.records(start, end, buckets=buckets):
            changes = self.decoder.captured(records.columns)
            yield from self._settled(
                records.bucket, records.columns, check(changes) if check else changes, records.next_offset
            )

    def refuse_later(self, bucket: int, offset: int, column: str | None, reason: str) -> None:
        """Treat a record that turned out not to fit when its commit was prepared: raise, or log a warning."""
        start = LogOffsets({bucket: offset})
        for records in self.log.records(start, LogOffsets({bucket: offset + 1}), buckets=(bucket,)):
            if len(records.columns):
                refusal = Refusal(record_index=0, column=column, reason=reason)
                self._settle(bucket, records.columns, refusal, "Nothing of the commit that it belongs to was written")

    def _settled(
        self, bucket: int, columns: LogColumns, changes: CapturedChanges, next_offset: int
    ) -> Iterator[CapturedBatch]:
        truncations = set[int]() if self.settings.on_truncate is OnTruncate.IGNORE else {*changes.truncations.tolist()}
        fails = changes.refusals[:1] if self.settings.on_reject is OnReject.FAIL else ()
        begin, truncated = 0, None
        for stop in sorted({*truncations, *(each.record_index for each in fails)}):
            offset = int(columns.offsets[stop])
            if stop > begin or truncated is not None:
                yield self._batch(bucket, columns, changes.between(begin, stop), offset, truncated)
            for each in fails:
                if each.record_index == stop:
                    self._settle(bucket, columns, each)
            self._refuse_truncation(bucket, offset)
            begin, truncated = stop, offset
        rest = changes.between(begin, len(columns))
        yield self._batch(bucket, columns, rest, next_offset, truncated)

    def _refuse_truncation(self, bucket: int, offset: int) -> None:
        if self.settings.on_truncate is OnTruncate.APPLY:
            return
        message = (
            f"topic {self.name!r}, partition {bucket}, offset {offset}: the source was truncated. "
            "source.on-truncate=apply deletes all rows of the table, source.on-truncate=ignore keeps them; everything "
            "before this record was committed"
        )
        raise InvalidInputError(message)

    def _batch(
        self, bucket: int, columns: LogColumns, changes: CapturedChanges, next_offset: int, truncated: int | None
    ) -> CapturedBatch:
        for each in changes.refusals:
            self._settle(bucket, columns, each)
        return CapturedBatch(
            bucket=bucket,
            changes=changes,
            offsets=columns.offsets[changes.record_indices],
            next_offset=next_offset,
            truncation_offset=truncated,
            skipped_count=len(changes.refusals),
        )

    def _settle(
        self, bucket: int, columns: LogColumns, refusal: Refusal, outcome: str = "Everything before it was committed"
    ) -> None:
        """Raise the error for a refused record, or log a warning if it is skipped."""
        index = refusal.record_index
        place = f"topic {self.name!r}, partition {bucket}, offset {columns.offsets[index]}"
        key, value = columns.keys[index].as_py(), columns.values[index].as_py() or b""
        column = "" if refusal.column is None else f", column {refusal.column!r}"
        problem = f"not a {self.decoder.name} change of this table" if refusal.is_unreadable else "can't be applied"
        what = (
            f"{place}, key {None if key is None else key[:_EXCERPT_BYTES]!r}{column}: {problem}: {refusal.reason}. "
            f"The record starts with {value[:_EXCERPT_BYTES]!r}"
        )
        if self.settings.on_reject is OnReject.SKIP:
            _log.warning("%s. It is skipped", what)
            return
        message = f"{what}. {outcome}. Correct its source or the table, or skip such records with source.on-reject=skip"
        raise (CorruptFileError if refusal.is_unreadable else InvalidInputError)(message)
