"""A topic whose records a stream applies to a table, by the reader of ``ingest``: Spark tells when, and up to where.

    trigger ─▶ offsets of the micro-batch, in the checkpoint ─▶ records from the table's offsets up to there ─▶ commits

The offsets in the table make it exactly once, not the number of the micro-batch: a micro-batch that is repeated
continues where its last commit ends. So it may consist of several commits, such as the rows before a new column, that
column, and the rows after it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from storage_lib.errors import CommitConflictError, CorruptFileError
from storage_lib.spark.data_source.batch_sources import CheckpointSources, is_begun
from storage_lib.table.sources.ingest import ROWS_PER_COMMIT, SourceReader

if TYPE_CHECKING:
    from storage_lib.log_store.codec.record_log import RecordLog
    from storage_lib.log_store.external.external_topic import ExternalTopic
    from storage_lib.log_store.log_offsets import LogOffsets
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.protocol.source_offsets import SourceRange
    from storage_lib.table.sources.row_check import RowCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedCounts:
    """What a stream has committed since it started, as in ``IngestResult``."""

    row_count: int = 0
    commit_count: int = 0
    skipped_count: int = 0
    rejected_count: int = 0


class AppliedTopic:
    """Applies the micro-batches of one stream, one after the other. ``open_log`` opens the topic.

    ``expect`` checks new rows as in ``ingest``.
    """

    def __init__(
        self,
        table: DynamicTable,
        topic: ExternalTopic,
        past: CheckpointSources,
        open_log: Callable[[], RecordLog],
        *,
        change_tracking: bool | None = None,
        rows_per_commit: int = ROWS_PER_COMMIT,
        expect: RowCheck | None = None,
    ) -> None:
        self._table = table
        self._topic = topic
        self._past = past
        self._open_log = open_log
        self._change_tracking = change_tracking
        self._rows_per_commit = rows_per_commit
        self._expect = expect
        self._lock = threading.Lock()
        self._reader: SourceReader | None = None
        self._read_under: tuple[int, frozenset[int]] | None = None
        self._counts = AppliedCounts()

    @property
    def counts(self) -> AppliedCounts:
        """What was committed so far."""
        return self._counts

    def apply(self, batch_id: int) -> None:
        """Commit the records of a micro-batch that the table does not have yet. Raises as ``ingest``.

        ``CommitConflictError`` if the table is not where the stream has left it.
        """
        with self._lock:
            batch = self._range(batch_id)
            self._table = self._table.refresh()
            reached = self._table.inspect.source_offsets(batch.source)
            if not (is_begun(batch, reached) or (reached is None and batch_id == 0)):
                raise self._conflict(batch, reached)
            reader = self._reader_of(batch)
            try:
                reader.read_up_to(batch.end, change_tracking=self._change_tracking)
            finally:
                self._count(reader)

    def stop(self) -> None:
        """Wait until the micro-batch that is being applied has ended."""
        with self._lock:
            self._reader = None

    def _range(self, batch_id: int) -> SourceRange:
        for each in self._past.ranges(batch_id):
            if each.source == self._topic.source:
                return each
        message = (
            f"table {self._table.name}: checkpoint {self._past.location} does not hold the offsets of source "
            f"{self._topic.source!r} in micro-batch {batch_id}. Start the stream with a new checkpoint_location: it "
            "continues where the table ends"
        )
        raise CorruptFileError(message)

    def _reader_of(self, batch: SourceRange) -> SourceReader:
        """Return the reader of the last micro-batch, or a new one if the table or the topic has changed since."""
        under = (self._table.schema.id, frozenset(batch.end.next_offsets))
        if self._reader is None or self._read_under != under:
            # The first micro-batch tells where the stream starts; it has records only before Spark 4.2.
            topic = replace(self._topic, start=batch.start or batch.end)
            self._reader = SourceReader(
                self._table,
                topic,
                self._open_log(),
                topic.source,
                self._rows_per_commit,
                skip_expired=False,
                expect=self._expect,
            )
            self._read_under = under
        return self._reader

    def _count(self, reader: SourceReader) -> None:
        read = reader.committed()
        if read is None:
            return
        counts = self._counts
        self._counts = AppliedCounts(
            row_count=counts.row_count + read.row_count,
            commit_count=counts.commit_count + read.commit_count,
            skipped_count=counts.skipped_count + read.skipped_count,
            rejected_count=counts.rejected_count + read.rejected_count,
        )

    def _conflict(self, batch: SourceRange, reached: LogOffsets | None) -> CommitConflictError:
        return CommitConflictError(
            f"table {self._table.name} has source {batch.source!r} up to {reached or 'its beginning'}, but the "
            f"micro-batch has its records from {batch.start or 'the beginning'} to {batch.end}: the table was rolled "
            "back, or another process has read the same source. Nothing of it was committed. Start the stream with a "
            "new checkpoint_location: it continues where the table ends"
        )
