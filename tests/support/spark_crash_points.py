"""Data source that kills the whole Spark driver at a chosen point of a chosen micro-batch, once.

The environment variable SPARK_CRASH names the point, the batch, a marker file and the process group of the driver
(its Python, its JVM and every worker of ``local[n]``). The marker file prevents a second crash after a restart.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

from pyspark import TaskContext

from storage_lib.file_store.write import FileStoreWrite
from storage_lib.log_store.kafka.kafka_log_store import KafkaLogStore
from storage_lib.spark.data_source.stream_writer import TableStreamWriter
from storage_lib.spark.data_source.table_source import DynamicTableSource
from storage_lib.table.write.task_log_writer import TransactionalLogWriter

CRASH_POINTS = ("log flushed", "files written", "snapshot created", "transactions ended", "commit log written")


class CrashPlan:
    """Crash plan from SPARK_CRASH."""

    def __init__(self) -> None:
        """Read the plan of this process; without the variable nothing ever crashes."""
        plan = json.loads(os.environ.get("SPARK_CRASH", "{}"))
        self.point = plan.get("point")
        self.batch_id = plan.get("batch")
        self._marker = Path(plan.get("marker", os.devnull))
        self._group = plan.get("group")

    def strike(self, point: str, batch_id: int | None) -> None:
        """Kill the driver if the plan names this point and batch."""
        if point != self.point or batch_id != self.batch_id or self._marker.exists():
            return
        self._marker.write_text(point)
        os.killpg(self._group, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


def _batch_of_task() -> int | None:
    context = TaskContext.get()
    batch_id = context.getLocalProperty("streaming.sql.batchId") if context is not None else None
    return None if batch_id is None else int(batch_id)


class CrashingStreamWriter(TableStreamWriter):
    """Real writer with crash points, which are installed in the process that uses it."""

    def write(self, iterator: Any) -> Any:
        """Install the crash points of a task."""
        plan = CrashPlan()
        prepare_files, flush_log = FileStoreWrite.prepare_commit, TransactionalLogWriter.flush

        def files_then_crash(write: FileStoreWrite) -> Any:
            messages = prepare_files(write)
            plan.strike("files written", _batch_of_task())
            return messages

        def log_then_crash(share: TransactionalLogWriter) -> Any:
            transactions = flush_log(share)
            plan.strike("log flushed", _batch_of_task())
            return transactions

        FileStoreWrite.prepare_commit, TransactionalLogWriter.flush = files_then_crash, log_then_crash  # type: ignore[assignment, method-assign]
        try:
            return super().write(iterator)
        finally:
            FileStoreWrite.prepare_commit, TransactionalLogWriter.flush = prepare_files, flush_log  # type: ignore[method-assign]

    def commit(self, messages: Any, batchId: int) -> None:  # noqa: N803  Spark's name
        """Install the crash points of a commit."""
        plan = CrashPlan()
        end_all = KafkaLogStore.end_all

        def end_between_crashes(log: KafkaLogStore, handles: Any, *, commit: bool) -> Any:
            if commit:
                plan.strike("snapshot created", batchId)
            outcomes = end_all(log, handles, commit=commit)
            if commit:
                plan.strike("transactions ended", batchId)
            return outcomes

        KafkaLogStore.end_all = end_between_crashes  # type: ignore[assignment, method-assign]
        try:
            super().commit(messages, batchId)
        finally:
            KafkaLogStore.end_all = end_all  # type: ignore[method-assign]


class CrashingSource(DynamicTableSource):
    """The ``dynamic_table`` source with crash points."""

    def streamWriter(self, schema: Any, overwrite: bool) -> CrashingStreamWriter:  # noqa: FBT001, N802  Spark's name
        """Strike the point ``commit log written`` while the next batch is planned, then return the crashing writer."""
        checkpoint = Path(self.options["checkpointlocation"].removeprefix("file:"))
        finished = [int(each.name) for each in (checkpoint / "commits").glob("[0-9]*")]
        CrashPlan().strike("commit log written", max(finished, default=None))
        real: Any = super().streamWriter(schema, overwrite)
        return CrashingStreamWriter(
            real._address, real._commit_user, real._checkpoint_location, real._plan, tracked=real._tracked
        )
