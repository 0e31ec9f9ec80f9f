"""Routes each row to its bucket and writes it to both stores; one object per task and commit."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Self

import numpy as np
import pyarrow as pa

from storage_lib.file_store.write import FileStoreWrite
from storage_lib.schema.placing.bucketing import group_rows
from storage_lib.schema.table_schema import TableSchema
from storage_lib.table.input.input_rows import InputRows, Rows, record_batches
from storage_lib.table.protocol.lease import Lease, TableLeases
from storage_lib.table.protocol.write_context import TableCommitMessage
from storage_lib.table.write.dynamic_buckets import DynamicBuckets
from storage_lib.table.write.late_rows import LateRows
from storage_lib.table.write.pending_changes import PendingChanges
from storage_lib.table.write.pre_images import PreImages
from storage_lib.table.write.task_deletions import TaskDeletions
from storage_lib.table.write.task_log_writer import TaskLogWriter


class TableWrite:
    """The write side of one task. Not thread-safe.

    ``log`` is None if rows are not written to the log, ``file_write`` if files are derived from the log later. ``held``
    adds pre-images to the log's changes, ``deletions`` completes deletions that have only their keys; both use
    ``pre_images``. ``fills_defaults`` is False for rows that were in the table before: their nulls stay.
    ``dynamic_buckets`` routes rows if the number of buckets is not fixed. ``dropped``: columns of an older schema that
    the rows may have, and that are left out. ``lease`` is renewed until the task ends, so
    that a long task does not lose its driver's lease. End it with ``prepare_commit`` or ``abort``.
    """

    def __init__(
        self,
        *,
        schema: TableSchema,
        input_rows: InputRows,
        file_write: FileStoreWrite | None,
        log: TaskLogWriter | None,
        leases: TableLeases,
        lease: Lease | None,
        pre_images: PreImages | None = None,
        held: PendingChanges | None = None,
        deletions: TaskDeletions | None = None,
        fills_defaults: bool = True,
        dynamic_buckets: DynamicBuckets | None = None,
        late_rows: LateRows | None = None,
        dropped: frozenset[str] = frozenset(),
    ) -> None:
        self._dropped = dropped
        self._late_rows = late_rows
        self._pre_images = pre_images
        self._held = held
        self._deletions = deletions
        self._dynamic_buckets = dynamic_buckets
        self._fills_defaults = fills_defaults
        self._schema = schema
        self._input_rows = input_rows
        self._file_write = file_write
        self._log = log
        self._row_count = 0
        self._is_closed = False
        self._beating = ExitStack()
        if lease is not None:
            self._beating.enter_context(leases.beating(lease))

    def __enter__(self) -> Self:
        """Return this write; leaving the ``with`` block aborts it if it fails or is not prepared."""
        return self

    def __exit__(self, exception_type: type[BaseException] | None, *_: object) -> None:
        if exception_type is not None or not self._is_closed:
            self.abort()

    def write(self, rows: Rows) -> None:
        """Add rows, in order; ``_row_kind`` contains the row kind of each.

        Raises ``InvalidInputError`` for invalid input. Earlier batches are then undone only by ``abort``, and with
        ``log.consistency=eventual`` not at all.
        """
        self.write_all(record_batches(rows))

    def write_all(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Add rows batch by batch, otherwise as ``write``."""
        if self._dropped:
            batches = (
                batch.select([name for name in batch.schema.names if name not in self._dropped]) for batch in batches
            )
        for rows in batches if self._deletions is None else self._deletions.completed(batches, self._flush):
            for batch in record_batches(rows):
                if batch.num_rows:
                    self._write_batch(batch)

    def prepare_commit(self) -> TableCommitMessage:
        """Flush both stores: files are durable and log records stored, but transactions are not committed yet."""
        self._write_held()
        if self._held is not None:
            self._held.finish()
        # Files are written and synced while the broker stores the log's records.
        files = () if self._file_write is None else self._file_write.prepare_commit()
        transactions = () if self._log is None else self._log.flush()
        assigners: tuple[int, ...] = ()
        if self._dynamic_buckets is not None:
            files = self._dynamic_buckets.indexed(files)
            assigners = tuple(sorted(self._dynamic_buckets.assigners))
        self._is_closed = True
        self._beating.close()
        return TableCommitMessage(
            files=files, transactions=transactions, row_count=self._row_count, assigners=assigners
        )

    def abort(self) -> None:
        """Delete the files and abort the transactions of this task."""
        self._is_closed = True
        self._beating.close()
        try:
            if self._file_write is not None:
                self._file_write.abort()
        finally:
            if self._log is not None:
                self._log.abort()

    def _write_batch(self, batch: pa.RecordBatch) -> None:
        rows, kinds = self._input_rows.conform(batch, fill=self._fills_defaults)
        if self._late_rows is not None:
            self._late_rows.refuse(rows)
        if self._dynamic_buckets is not None and self._file_write is not None:
            # A table with dynamic buckets has no log: a topic has a fixed number of partitions.
            for partition, bucket, group, group_kinds in self._dynamic_buckets.route(rows, kinds):
                self._file_write.write(partition, bucket, group, group_kinds)
            self._row_count += rows.num_rows
            return
        of_bucket: dict[int, list[np.ndarray]] = {}
        for partition, bucket, indices in group_rows(rows, self._schema):
            if self._file_write is not None:
                everything = len(indices) == rows.num_rows
                group = rows if everything else rows.take(pa.array(indices))
                group_kinds = kinds if everything else kinds.take(pa.array(indices))
                self._file_write.write(partition, bucket, group, group_kinds)
            of_bucket.setdefault(bucket, []).append(indices)
        if self._log is not None:
            for bucket, parts in of_bucket.items():
                self._write_log(self._log, bucket, parts, rows, kinds)
        if self._held is not None and self._held.are_many:
            self._flush()
        self._row_count += rows.num_rows

    def _flush(self) -> None:
        """Write buffered changes to the log and rows in memory to files, so that later look-ups see them."""
        self._write_held()
        if self._file_write is not None and self._pre_images is not None:
            self._pre_images.advance(self._file_write.prepare_commit())

    def _write_held(self) -> None:
        """Write buffered changes to the log, with their pre-images."""
        if self._held is None or self._log is None:
            return
        for bucket, changes in self._held.take():
            if changes.rows.num_rows:
                self._log.write(bucket, changes.rows, changes.kinds)

    def _write_log(
        self, log: TaskLogWriter, bucket: int, parts: list[np.ndarray], rows: pa.RecordBatch, kinds: pa.Array
    ) -> None:
        # One log write per bucket and batch, in arrival order, however many partitions the rows are in.
        indices = parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))
        if len(indices) < rows.num_rows:
            rows, kinds = rows.take(pa.array(indices)), kinds.take(pa.array(indices))
        if self._held is None:
            log.write(bucket, rows, kinds)
        else:
            self._held.hold(bucket, rows, kinds)
