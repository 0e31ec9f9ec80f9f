"""The writer of one task: into the files, the log or both, as its order and the table's options say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.errors import SnapshotExpiredError
from storage_lib.schema.options.table_options import LogConsistency, UpdateBeforeSource
from storage_lib.table.changes.answer_rows import AnswerRows
from storage_lib.table.changes.complete_deletes import with_kind_column
from storage_lib.table.protocol.table_context import TableContext
from storage_lib.table.write.checked_changes import CheckedChanges
from storage_lib.table.write.dynamic_buckets import dynamic_buckets_of
from storage_lib.table.write.held_changes import HELD_BYTES_MAX, HeldChanges
from storage_lib.table.write.log_share import AppendedShare, FencedShare, LogShare, TransactionalShare
from storage_lib.table.write.pre_images import PreImages
from storage_lib.table.write.table_write import TableWrite
from storage_lib.table.write.task_deletions import TaskDeletions

if TYPE_CHECKING:
    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.table.input.input_rows import InputRows
    from storage_lib.table.protocol.write_order import WriteOrder
    from storage_lib.table.read.point_lookup import PointLookup


class TaskWrites:
    """Opens the writers of one table's tasks. ``old_rows`` finds the rows before a change."""

    def __init__(self, context: TableContext, *, input_rows: InputRows, old_rows: PointLookup) -> None:
        self._context = context
        self._table = context.name
        self._environment = context.environment
        self._schema = context.schema
        self._options = context.options
        self._file_store = context.file_store
        self._log = context.log
        self._lease = context.lease
        self._input = input_rows
        self._old_rows = old_rows

    @property
    def log_comes_first(self) -> bool:
        """See ``WriteBuilder.log_comes_first``."""
        return self._log is not None and self._options.log_consistency is LogConsistency.EVENTUAL

    def open(self, order: WriteOrder, *, task_index: int | None = None) -> TableWrite:
        """See ``WriteBuilder.open_task``."""
        base = self._base_of(order)
        file_write = None
        if not (self.log_comes_first and order.writes_log):
            file_write = self._file_store.new_write(
                base, overwrite=order.overwrite is not None, sequence_block=task_index or 0
            )
        log = self._log_share(order, only_task=task_index is None)
        pre_images = None
        if self._schema.primary_keys and log is not None and not order.is_difference:
            pre_images = PreImages(
                table=self._table, lookup=self._old_rows, primary_keys=self._schema.primary_keys, base=base
            )
        return TableWrite(
            schema=self._schema,
            input_rows=self._input,
            file_write=file_write,
            log=log,
            lease=self._lease,
            turn=order.turn,
            pre_images=pre_images,
            held=None if pre_images is None else self._held_changes(pre_images),
            # The files of an eventual table are behind its log, so they cannot complete a deletion.
            deletions=None if pre_images is None or self.log_comes_first else TaskDeletions(self._context, pre_images),
            fills_defaults=not order.is_difference,
            dynamic_buckets=dynamic_buckets_of(
                table=self._table,
                schema=self._schema,
                options=self._options,
                file_store=self._file_store,
                lookup=self._old_rows,
                order=order,
                base=base,
            ),
        )

    def answer_changes(self, order: WriteOrder, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """See ``WriteBuilder.answer_changes``."""
        base = self._base_of(order)
        answer = AnswerRows(
            table=self._table,
            primary_keys=self._schema.primary_keys,
            find=lambda keys: self._old_rows.rows_of(base, keys),
        )
        conformed = (self._input.conform(batch) for batch in batches if batch.num_rows)
        for rows, kinds in answer.changes(conformed):
            yield with_kind_column(pa.Table.from_batches([rows]), kinds, self._options.row_kind_field)

    def _base_of(self, order: WriteOrder) -> Snapshot | None:
        if order.base_snapshot_id is None:
            return None
        try:
            return self._file_store.snapshots.load(order.base_snapshot_id)
        except SnapshotExpiredError:
            # The newest will do for sequence numbers: an append in another turn since fails this commit anyway.
            return self._file_store.snapshots.latest()

    def _held_changes(self, pre_images: PreImages) -> HeldChanges | None:
        """For a log with pre-images, which are added to the changes or compared with them."""
        if not self._context.logs_old_rows:
            return None
        looks_up = self._options.write_produce_update_before is UpdateBeforeSource.LOOKUP
        return (HeldChanges if looks_up else CheckedChanges)(
            table=self._table,
            pre_images=pre_images,
            primary_keys=self._schema.primary_keys,
            held_bytes_max=min(self._options.write_buffer_size_bytes, HELD_BYTES_MAX),
        )

    def _log_share(self, order: WriteOrder, *, only_task: bool) -> LogShare | None:
        if self._log is None or not order.writes_log:
            return None
        if self.log_comes_first and order.turn is None:
            return AppendedShare(self._log)
        share = FencedShare if self.log_comes_first else TransactionalShare
        return share(
            table=self._table,
            log=self._log,
            lease=self._lease,
            turn=order.turn,
            only_task=only_task,
            clock=self._environment.clock,
            timeout_ms=self._options.log_transaction_timeout_ms,
        )
