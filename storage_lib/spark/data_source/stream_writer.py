"""Stream write: each micro-batch is one commit under (query id, batch id), so a replayed batch is not committed twice.

planning process   streamWriter()  acquire the lease, repair the log       one writer object per micro-batch
tasks              write()         files, log records in open transactions
commit process     commit()        the snapshot, then the transactions     a second object, which gets the write
                                                                           context from the tasks' messages

With ``log.consistency=eventual`` no lease is held, and tasks only write log records, which are visible at once. A
replayed batch is written again, and the files are written from the log during the stream (``StreamTiering``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import WriterCommitMessage

from storage_lib.catalog.table_cache import TableKey, table_at
from storage_lib.spark.data_source.batch_sources import CheckpointSources
from storage_lib.spark.data_source.stream_tiering import tier_if_overdue
from storage_lib.spark.tasks.driver_lease import give_up
from storage_lib.spark.tasks.table_tasks import TaskMessage, commit_tasks, messages_of, write_task
from storage_lib.spark.versions.stream_api import DataSourceStreamArrowWriter
from storage_lib.table.protocol.table_address import TableAddress
from storage_lib.table.protocol.write_context import WriteContext

if TYPE_CHECKING:
    import pyarrow as pa

    from storage_lib.log_store.log_offsets import LogOffsets
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.protocol.source_offsets import SourceRange


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """Table and write context of a micro-batch, from the planning process; ``adds_up`` as ``StreamPlan.adds_up``."""

    key: TableKey
    write_context: WriteContext
    adds_up: bool = False


class TableStreamWriter(DataSourceStreamArrowWriter):
    """Writer of one micro-batch.

    ``plan`` is None in the commit process, which gets it from the tasks' messages. ``tracked`` is the change tracking
    of the statement; None: by the table's option.
    """

    def __init__(
        self,
        address: TableAddress,
        commit_user: str,
        checkpoint_location: str | None,
        plan: BatchPlan | None,
        *,
        tracked: bool | None = None,
    ) -> None:
        self._address = address
        self._commit_user = commit_user
        self._checkpoint_location = checkpoint_location
        self._plan = plan
        self._tracked = tracked

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """Write the rows of one task to the files and the log. Runs in the task."""
        if self._plan is None:
            message = "this writer was made to commit a micro-batch; only the one that planned it can write"
            raise RuntimeError(message)
        return write_task(self._plan.key, self._plan.write_context, iterator, adds_up=self._plan.adds_up)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  Spark's name
        """Commit one snapshot, unless this batch has one already. Runs on the driver after all tasks have succeeded."""
        finished = [message for message in messages_of(messages) if message is not None]
        sources = self._sources(batchId)
        if finished:
            table, write_context = finished[0].key.table(), finished[0].write_context
            self.refuse_reported_sources(table, batchId, tracked=write_context.tracked)
            commit_tasks(table, write_context, finished, batchId, defers_tiering=True, sources=sources)
            if table.new_write().is_log_first and write_context.writes_log:
                tier_if_overdue(table)
            return
        table = table_at(self._address)
        give_up(table, self._commit_user, [])
        self.refuse_reported_sources(
            table, batchId, tracked=table.options.change_tracking if self._tracked is None else self._tracked
        )
        if sources:
            write_context = replace(table.new_write().begin(commit_user=self._commit_user), identifiers_ascend=True)
            table.new_write().commit(write_context, [], batchId, defers_tiering=True, sources=sources)

    def refuse_reported_sources(self, table: DynamicTable, batch_id: int | None = None, *, tracked: bool) -> None:
        """Refuse sources that another writer has recorded, for a stream into an eventual log.

        Raises ``InvalidInputError``. The first batch is empty, so its check runs before any record is in the log;
        before Spark 4.2 it has rows, and this is called for the newest batch, which is planned.
        """
        known = self._checkpoint_sources() if tracked and table.new_write().is_log_first else None
        if known is not None:
            known.refuse_reported_sources(table, batch_id)

    def _sources(self, batch_id: int) -> tuple[SourceRange, ...]:
        """Return the source ranges of the micro-batch; empty if no source has advanced."""
        known = self._checkpoint_sources()
        ranges = () if known is None else known.ranges(batch_id)
        if batch_id == 0:
            # A query's first batch only records its start, which equals the table's offsets if it continues there;
            # before Spark 4.2 it also has rows.
            table = table_at(self._address)
            ranges = tuple(
                replace(each, start=_agreed(table.inspect.source_offsets(each.source), _first_place(each)))
                for each in ranges
            )
        return ranges if any(each.start != each.end for each in ranges) else ()

    def _checkpoint_sources(self) -> CheckpointSources | None:
        if self._checkpoint_location is None:
            return None
        return CheckpointSources.of(self._checkpoint_location, self._address.options)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803  Spark's name
        """Undo the finished tasks and release the lease. Runs on the driver after a task or the commit has failed."""
        give_up(table_at(self._address), self._commit_user, messages_of(messages))


def _first_place(first: SourceRange) -> LogOffsets:
    return first.end if first.start is None else first.start


def _agreed(reached: LogOffsets | None, begun: LogOffsets) -> LogOffsets | None:
    return begun if begun.is_same_place(reached) else None
