"""What runs in Spark's tasks and in the Python processes of its driver, whatever kind of read or write it is for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from storage_lib.errors import InvalidInputError
from storage_lib.spark.table_cache import TableKey
from storage_lib.spark.worker_garbage import spare_what_is_imported
from storage_lib.table.write_order import TableCommitMessage, WriteOrder

if TYPE_CHECKING:
    import pyarrow as pa

    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.source_offsets import SourceRange


@dataclass(frozen=True)
class TaskMessage(WriterCommitMessage):
    """What one task wrote, where and under which order: Spark commits a stream in a process that knows neither."""

    key: TableKey
    order: WriteOrder
    written: TableCommitMessage


def write_task(key: TableKey, order: WriteOrder, batches: Iterable[pa.RecordBatch]) -> TaskMessage:
    """Write the rows of one task. If it fails, or is interrupted, nothing of it stays behind.

    A task that Spark has given up may still run to its end; it notices that its turn is over and undoes itself.
    """
    spare_what_is_imported()
    table = key.table()
    context = TaskContext.get()
    task = table.new_write(order, task_index=0 if context is None else context.partitionId())
    try:
        task.write_all(batches)
        written = task.prepare_commit()
        if order.turn is not None:
            table.lease.check(order.turn)
    except BaseException:
        task.abort()
        raise
    return TaskMessage(key=key, order=order, written=written)


def messages_of(messages: Sequence[WriterCommitMessage | None]) -> list[TaskMessage | None]:
    """The messages of the tasks; Spark puts None in place of those that did not finish."""
    return [message if isinstance(message, TaskMessage) else None for message in messages]


def commit_tasks(
    table: DynamicTable,
    order: WriteOrder,
    finished: Sequence[TaskMessage],
    commit_identifier: int,
    *,
    defers_tiering: bool = False,
    sources: Sequence[SourceRange] = (),
) -> Snapshot | None:
    """Commit what all tasks wrote under one order; undone if it fails for sure.

    ``defers_tiering`` and ``sources`` as ``DynamicTable.commit_write``.
    """
    written = [message.written for message in finished]
    try:
        if not table.schema.is_append_only:
            _refuse_shared_buckets(table.name, order, written)
    except InvalidInputError:
        table.abort_write(order, written)
        raise
    snapshot = table.commit_write(order, written, commit_identifier, defers_tiering=defers_tiering, sources=sources)
    if snapshot is not None and order.overwrite is None:
        # Compaction is another job's; only a bucket that it can't keep up with makes the writer wait.
        table.compact_after(snapshot, written, only_crowded=True)
    return snapshot


def _refuse_shared_buckets(table: str, order: WriteOrder, written: Sequence[TableCommitMessage]) -> None:
    """An overwrite puts one sorted run into each bucket, so two tasks must not both have files of one."""
    if order.overwrite is None:
        return
    seen: set[tuple[bytes, int]] = set()
    for message in written:
        mine = {(each.partition, each.bucket) for each in message.files}
        if seen & mine:
            shared = min(bucket for _, bucket in seen & mine)
            refusal = (
                f"table {table}: two tasks of one overwrite have rows of bucket {shared}. Distribute the rows by "
                "bucket: use storage_lib.spark.write(df, table, mode='overwrite') in place of df.write"
            )
            raise InvalidInputError(refusal)
        seen |= mine
