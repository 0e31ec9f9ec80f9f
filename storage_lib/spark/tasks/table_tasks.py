"""What runs in Spark's tasks and in the Python processes of its driver, whatever kind of read or write it is for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from storage_lib.errors import InvalidInputError
from storage_lib.spark.tasks.table_cache import TableKey
from storage_lib.spark.tasks.worker_garbage import spare_what_is_imported
from storage_lib.spark.translation.spark_schema import ROW_POSITION
from storage_lib.table.changes.answer_rows import SharedKeyError
from storage_lib.table.changes.rows_in_order import rows_in_order
from storage_lib.table.protocol.write_context import TableCommitMessage, WriteContext
from storage_lib.table.write.checked_changes import ContradictionError

if TYPE_CHECKING:
    import pyarrow as pa

    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.protocol.source_offsets import SourceRange


@dataclass(frozen=True)
class TaskMessage(WriterCommitMessage):
    """The output of one task, with its table and order: Spark commits a stream in a process that knows neither.

    ``refusal``: why it wrote nothing. Only the commit knows whether that matters: a micro-batch that comes again finds
    its own rows in the table.
    """

    key: TableKey
    write_context: WriteContext
    written: TableCommitMessage
    refusal: str | None = None


def write_task(
    key: TableKey, write_context: WriteContext, batches: Iterable[pa.RecordBatch], *, adds_up: bool = False
) -> TaskMessage:
    """Write the rows of one task. If it fails, or is interrupted, nothing of it stays behind.

    ``adds_up``: they are rows that are added to an answer or taken from it (``WriteBuilder.answer_changes``).

    A task that Spark has given up may still run to its end; it notices that its lease is over and undoes itself.
    """
    spare_what_is_imported()
    table = key.table()
    context = TaskContext.get()
    rows = _in_order(batches, table)
    task = table.new_write().open_task(write_context, task_index=0 if context is None else context.partitionId())
    try:
        if adds_up:
            for changes in table.new_write().answer_changes(write_context, rows):
                task.write(changes)
        else:
            task.write_all(rows)
        written = task.prepare_commit()
        if write_context.lease is not None:
            table.new_write().leases.check(write_context.lease)
    except (SharedKeyError, ContradictionError) as error:
        task.abort()
        return TaskMessage(key=key, write_context=write_context, written=TableCommitMessage(), refusal=str(error))
    except BaseException:
        task.abort()
        raise
    return TaskMessage(key=key, write_context=write_context, written=written)


def _in_order(batches: Iterable[pa.RecordBatch], table: DynamicTable) -> Iterable[pa.RecordBatch]:
    """The rows by their positions and without them, if they have any."""
    left = iter(batches)
    first = next(left, None)
    if first is None:
        return ()
    everything = chain((first,), left)
    is_own = any(field.name == ROW_POSITION for field in table.schema.fields)
    return everything if is_own or ROW_POSITION not in first.schema.names else rows_in_order(everything, ROW_POSITION)


def messages_of(messages: Sequence[WriterCommitMessage | None]) -> list[TaskMessage | None]:
    """The messages of the tasks; Spark puts None in place of those that did not finish."""
    return [message if isinstance(message, TaskMessage) else None for message in messages]


def commit_tasks(
    table: DynamicTable,
    write_context: WriteContext,
    finished: Sequence[TaskMessage],
    commit_identifier: int,
    *,
    defers_tiering: bool = False,
    sources: Sequence[SourceRange] = (),
) -> Snapshot | None:
    """Commit what all tasks wrote under one order; undone if it fails for sure.

    ``defers_tiering`` and ``sources`` as ``WriteBuilder.commit``.
    """
    written = [message.written for message in finished]
    try:
        _refuse_contradictions(table, write_context, finished, commit_identifier)
        if not table.schema.is_append_only:
            _refuse_shared_buckets(table.name, write_context, written)
    except InvalidInputError:
        table.new_write().abort(write_context, written)
        raise
    snapshot = table.new_write().commit(
        write_context, written, commit_identifier, defers_tiering=defers_tiering, sources=sources
    )
    if snapshot is not None and write_context.overwrite is None:
        # Compaction is another job's; only a bucket that it can't keep up with makes the writer wait.
        table.maintenance.compact_written(snapshot, written, only_crowded=True)
    return snapshot


def _refuse_contradictions(
    table: DynamicTable, write_context: WriteContext, finished: Sequence[TaskMessage], commit_identifier: int
) -> None:
    refusal = next((message.refusal for message in finished if message.refusal is not None), None)
    if refusal is not None and table.new_write().committed(write_context.commit_user, commit_identifier) is None:
        raise InvalidInputError(refusal)


def _refuse_shared_buckets(table: str, write_context: WriteContext, written: Sequence[TableCommitMessage]) -> None:
    """An overwrite puts one sorted run into each bucket, so two tasks must not both have files of one."""
    if write_context.overwrite is None:
        return
    seen: set[tuple[bytes, int]] = set()
    for message in written:
        mine = {(each.partition, each.bucket) for each in message.files}
        if seen & mine:
            shared = min(bucket for _, bucket in seen & mine)
            refusal = (
                f"table {table}: two tasks of one overwrite have rows of bucket {shared}. Distribute the rows by "
                "bucket: use storage_lib.spark.write(df, table, mode='overwrite') in place of df.write. "
                "Dynamic buckets that another number of assigners filled need one task: df.coalesce(1).write"
            )
            raise InvalidInputError(refusal)
        seen |= mine
