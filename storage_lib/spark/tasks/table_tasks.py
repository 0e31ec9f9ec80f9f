"""Write and commit steps shared by batch and stream writes, in Spark's tasks and in the driver's Python processes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from storage_lib.catalog.table_cache import TableKey
from storage_lib.errors import InvalidInputError
from storage_lib.spark.tasks.worker_garbage import spare_what_is_imported
from storage_lib.spark.types.spark_schema import ROW_POSITION
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
    """Output of one task, with the table and write context, which the committing process of a stream does not have.

    ``refusal`` is why the task's rows were refused; None if they were written. Only the commit can decide whether this
    is an error: a replayed micro-batch finds its own rows in the table.
    """

    key: TableKey
    write_context: WriteContext
    written: TableCommitMessage
    refusal: str | None = None


def write_task(
    key: TableKey, write_context: WriteContext, batches: Iterable[pa.RecordBatch], *, adds_up: bool = False
) -> TaskMessage:
    """Write the rows of one task. Undoes all its writes if it fails or is interrupted.

    ``adds_up``: the rows are additions to and removals from a query's result (``WriteBuilder.answer_changes``).

    A task that Spark has abandoned may still run to its end; it then finds its lease expired and undoes its writes.
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
    """Sort rows by ``_row_position`` and drop that column; rows without positions are returned unchanged."""
    left = iter(batches)
    first = next(left, None)
    if first is None:
        return ()
    everything = chain((first,), left)
    is_own = any(field.name == ROW_POSITION for field in table.schema.fields)
    return everything if is_own or ROW_POSITION not in first.schema.names else rows_in_order(everything, ROW_POSITION)


def messages_of(messages: Sequence[WriterCommitMessage | None]) -> list[TaskMessage | None]:
    """Return the messages of the tasks, with None for each task that did not finish."""
    return [message if isinstance(message, TaskMessage) else None for message in messages]


def commit_tasks(
    table: DynamicTable,
    write_context: WriteContext,
    finished: Sequence[TaskMessage],
    commit_identifier: int,
    *,
    defers_tiering: bool = False,
    sources: Sequence[SourceRange] = (),
    watermark: int | None = None,
) -> Snapshot | None:
    """Commit the output of all tasks as one snapshot; return it, or None if ``WriteBuilder.commit`` returns none.

    Undoes the tasks' writes if their rows contradict each other. ``defers_tiering``, ``sources`` and ``watermark`` as
    ``WriteBuilder.commit``. Raises ``InvalidInputError`` for refused rows.
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
        write_context, written, commit_identifier, defers_tiering=defers_tiering, sources=sources, watermark=watermark
    )
    if snapshot is not None and write_context.overwrite is None:
        # A separate job compacts; the writer compacts only buckets with too many files, as back pressure.
        table.maintenance.compact_written(snapshot, written, only_crowded=True)
    return snapshot


def _refuse_contradictions(
    table: DynamicTable, write_context: WriteContext, finished: Sequence[TaskMessage], commit_identifier: int
) -> None:
    refusal = next((message.refusal for message in finished if message.refusal is not None), None)
    if refusal is not None and table.new_write().committed(write_context.commit_user, commit_identifier) is None:
        raise InvalidInputError(refusal)


def _refuse_shared_buckets(table: str, write_context: WriteContext, written: Sequence[TableCommitMessage]) -> None:
    """Refuse an overwrite in which two tasks wrote files of the same bucket: each bucket gets one sorted run."""
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
