"""Opens a task's writer for the files, the log or both, depending on the write's context and the table's options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.errors import SnapshotExpiredError
from storage_lib.file_store.merge_tree.merge_function.sequence_order import SequenceOrder
from storage_lib.schema.options.table_options import MergeEngine, SortOrder, UpdateBeforeSource
from storage_lib.table.changes.answer_rows import AnswerRows
from storage_lib.table.changes.complete_deletes import with_kind_column
from storage_lib.table.protocol.table_context import TableContext
from storage_lib.table.write.checked_changes import CheckedChanges
from storage_lib.table.write.dynamic_buckets import DynamicBuckets, dynamic_buckets_of
from storage_lib.table.write.late_rows import LateRows
from storage_lib.table.write.pending_changes import HELD_BYTES_MAX, PendingChanges
from storage_lib.table.write.pre_images import PreImages
from storage_lib.table.write.table_write import TableWrite
from storage_lib.table.write.task_deletions import TaskDeletions
from storage_lib.table.write.task_log_writer import (
    AppendingLogWriter,
    FencedLogWriter,
    TaskLogWriter,
    TransactionalLogWriter,
)

if TYPE_CHECKING:
    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.table.input.input_rows import InputRows
    from storage_lib.table.protocol.write_context import WriteContext
    from storage_lib.table.read.point_lookup import PointLookup


class TaskWrites:
    """Opens the writers of one table's tasks.

    ``old_rows`` looks up pre-images; ``newest`` returns the same object under the table's newest schema.
    """

    def __init__(
        self,
        context: TableContext,
        *,
        input_rows: InputRows,
        old_rows: PointLookup,
        newest: Callable[[], TaskWrites],
    ) -> None:
        self._newest = newest
        self._context = context
        self._table = context.name
        self._environment = context.environment
        self._schema = context.schema
        self._options = context.options
        self._file_store = context.file_store
        self._log = context.log
        self._leases = context.leases
        self._input = input_rows
        self._old_rows = old_rows
        self._is_log_first = context.is_log_first

    def open(self, write_context: WriteContext, *, task_index: int | None = None) -> TableWrite:
        """See ``WriteBuilder.open_task``.

        A writer that may have to look up rows for the log writes under the newest schema, because they have values in
        columns that were added after this table had been opened.
        """
        if self._looks_up(write_context) and not self._file_store.is_of_newest_schema():
            newest = self._newest()
            # A column of a log can't be renamed.
            ids = {field.id for field in newest._schema.fields}  # noqa: SLF001  the same class
            dropped = frozenset(field.name for field in self._schema.fields if field.id not in ids)
            return newest._opened(write_context, task_index, dropped)  # noqa: SLF001
        return self._opened(write_context, task_index, frozenset())

    def _looks_up(self, write_context: WriteContext) -> bool:
        writes_log = self._log is not None and write_context.writes_log
        return writes_log and bool(self._schema.primary_keys) and not write_context.is_difference

    def _opened(self, write_context: WriteContext, task_index: int | None, dropped: frozenset[str]) -> TableWrite:
        base = self._base_of(write_context)
        file_write = None
        if not (self._is_log_first and write_context.writes_log):
            file_write = self._file_store.new_write(
                base,
                overwrite=write_context.overwrite is not None,
                stored_rows=write_context.is_difference,
                sequence_block=task_index or 0,
            )
        log = self._task_log_writer(write_context, only_task=task_index is None)
        pre_images = None
        if self._looks_up(write_context):
            pre_images = PreImages(
                table=self._table, lookup=self._old_rows, primary_keys=self._schema.primary_keys, base=base
            )
        return TableWrite(
            schema=self._schema,
            input_rows=self._input,
            file_write=file_write,
            log=log,
            leases=self._leases,
            lease=write_context.lease,
            pre_images=pre_images,
            held=None if pre_images is None else self._held_changes(pre_images),
            # The files of an eventual table are behind its log, so they cannot complete a deletion.
            deletions=None if pre_images is None or self._is_log_first else TaskDeletions(self._context, pre_images),
            fills_defaults=not write_context.is_difference,
            dynamic_buckets=self._dynamic_buckets(write_context, base),
            late_rows=self._late_rows(base) if write_context.refuses_late else None,
            dropped=dropped,
        )

    def answer_changes(self, write_context: WriteContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """See ``WriteBuilder.answer_changes``."""
        base = self._base_of(write_context)
        answer = AnswerRows(
            table=self._table,
            primary_keys=self._schema.primary_keys,
            find=lambda keys: self._old_rows.rows_of(base, keys),
        )
        conformed = (self._input.conform(batch) for batch in batches if batch.num_rows)
        for rows, kinds in answer.changes(conformed):
            yield with_kind_column(pa.Table.from_batches([rows]), kinds, self._options.row_kind_field)

    def _base_of(self, write_context: WriteContext) -> Snapshot | None:
        if write_context.base_snapshot_id is None:
            return None
        try:
            return self._file_store.snapshots.load(write_context.base_snapshot_id)
        except SnapshotExpiredError:
            # The newest suffices for sequence numbers: an append under another lease since then fails this commit
            # anyway.
            return self._file_store.snapshots.latest()

    def _held_changes(self, pre_images: PreImages) -> PendingChanges | None:
        """Return the buffer of changes for a log with pre-images (looked up or checked); None for other logs."""
        if not self._context.logs_old_rows:
            return None
        looks_up = self._options.write_produce_update_before is UpdateBeforeSource.LOOKUP
        return (PendingChanges if looks_up else CheckedChanges)(
            table=self._table,
            pre_images=pre_images,
            primary_keys=self._schema.primary_keys,
            held_bytes_max=min(self._options.write_buffer_size_bytes, HELD_BYTES_MAX),
        )

    def _late_rows(self, base: Snapshot | None) -> LateRows | None:
        options = self._options
        order = SequenceOrder(
            fields=options.sequence_field, descending=options.sequence_field_sort_order is SortOrder.DESCENDING
        )
        if not order.fields or options.merge_engine is not MergeEngine.DEDUPLICATE:
            return None  # an engine that combines rows has no row that is hidden
        return LateRows(
            table=self._table,
            lookup=self._old_rows,
            base=base,
            primary_keys=tuple(self._schema.primary_keys),
            order=order,
        )

    def _dynamic_buckets(self, write_context: WriteContext, base: Snapshot | None) -> DynamicBuckets | None:
        """Return the router of a task's rows; None for a table with fixed buckets."""
        if not self._schema.has_dynamic_buckets:
            return None
        return dynamic_buckets_of(
            table=self._table,
            schema=self._schema,
            options=self._options,
            file_store=self._file_store,
            lookup=self._old_rows,
            write_context=write_context,
            base=base,
        )

    def _task_log_writer(self, write_context: WriteContext, *, only_task: bool) -> TaskLogWriter | None:
        if self._log is None or not write_context.writes_log:
            return None
        if self._is_log_first and write_context.lease is None:
            return AppendingLogWriter(self._log)
        share = FencedLogWriter if self._is_log_first else TransactionalLogWriter
        return share(
            table=self._table,
            log=self._log,
            leases=self._leases,
            lease=write_context.lease,
            only_task=only_task,
            clock=self._environment.clock,
            timeout_ms=self._options.log_transaction_timeout_ms,
        )
