"""Writes by one process as one task, for ``append``, ``overwrite`` and tracked drops of partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass

import pyarrow as pa

from storage_lib.errors import StorageError, note_outcome
from storage_lib.file_store.rejected.rejected_change import RejectedChange
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.progress.operation import Operation
from storage_lib.table.builders.write_builder import WriteBuilder
from storage_lib.table.maintenance.post_commit_compaction import PostCommitCompaction
from storage_lib.table.protocol.source_offsets import SourceRange
from storage_lib.table.protocol.write_context import WriteContext


@dataclass(frozen=True)
class DirectWrites:
    """Writes and commits rows under a begun commit, then runs the compactions that are due."""

    builder: WriteBuilder
    compaction: PostCommitCompaction

    def write(
        self,
        write_context: WriteContext,
        batches: Iterable[pa.RecordBatch],
        commit_identifier: int,
        source: SourceRange | None = None,
        *,
        rejected: RejectedChange | None = None,
        progress: AbstractContextManager[Operation] | None = None,
    ) -> Snapshot | None:
        """Write and commit rows; None if there was nothing to commit. A failure aborts the commit.

        ``progress`` counts the rows; it ends before the commit.
        """
        builder = self.builder
        try:
            task = builder.open_task(write_context)
            try:
                with progress or nullcontext() as rows:
                    task.write_all(batches if rows is None else _counted(batches, rows))
                    if rows is not None:
                        # The lease is not renewed after the writer's end, so that a slow callback could lose it.
                        rows.finish()
                    message = task.prepare_commit()
            except BaseException:
                task.abort()
                raise
        except BaseException as error:
            if builder.is_log_first and write_context.writes_log:
                # Some of the rows may be in the log, where they are visible at once.
                note_outcome(error, committed=None)
            with suppress(StorageError):
                builder.abort(write_context, [])
            raise
        snapshot = builder.commit(
            write_context, [message], commit_identifier, sources=[source] if source else [], rejected=rejected
        )
        if snapshot is not None:
            if message.files and write_context.overwrite is None:
                self.compaction.compact_written(snapshot, [message])
            else:
                self.compaction.compact_changed(snapshot)
        return snapshot


def _counted(batches: Iterable[pa.RecordBatch], rows: Operation) -> Iterator[pa.RecordBatch]:
    """Yield the same batches; count the rows of each when the next one is requested."""
    for batch in batches:
        yield batch
        rows.advance(batch.num_rows)
