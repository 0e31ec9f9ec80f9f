"""Batch write: planning acquires the lease, tasks write files and open log transactions, and Spark's driver commits.

One writer object serves one write; Spark pickles it from the planning process into all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from storage_lib.spark.tasks.driver_lease import give_up
from storage_lib.spark.tasks.table_tasks import TaskMessage, commit_tasks, messages_of, write_task

if TYPE_CHECKING:
    import pyarrow as pa

    from storage_lib.catalog.table_cache import TableKey
    from storage_lib.table.protocol.source_offsets import SourceRange
    from storage_lib.table.protocol.write_context import WriteContext


class TableBatchWriter(DataSourceArrowWriter):
    """Writer of one commit; ``commit_identifier`` makes a repeated write idempotent.

    ``adds_up`` as for ``write_task``; ``sources`` and ``watermark`` as for ``WriteBuilder.commit``.
    """

    def __init__(
        self,
        key: TableKey,
        write_context: WriteContext,
        commit_identifier: int,
        *,
        adds_up: bool = False,
        sources: Sequence[SourceRange] = (),
        watermark: int | None = None,
    ) -> None:
        self._key = key
        self._write_context = write_context
        self._commit_identifier = commit_identifier
        self._adds_up = adds_up
        self._sources = sources
        self._watermark = watermark

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """Write the rows of one task to the files and the log. Runs in the task."""
        return write_task(self._key, self._write_context, iterator, adds_up=self._adds_up)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit one snapshot. Runs on the driver after all tasks have succeeded."""
        finished = [message for message in messages_of(messages) if message is not None]
        commit_tasks(
            self._key.table(),
            self._write_context,
            finished,
            self._commit_identifier,
            sources=self._sources,
            watermark=self._watermark,
        )

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Undo the finished tasks and release the lease. Runs on the driver after a task has failed permanently."""
        give_up(self._key.table(), self._write_context.commit_user, messages_of(messages), self._write_context)
