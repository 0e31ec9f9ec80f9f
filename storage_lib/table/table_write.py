"""Routes each row to its bucket and writes it to both stores; one object per task, good for one commit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Self

import numpy as np
import pyarrow as pa

from storage_lib.errors import InvalidInputError, LeaseLostError
from storage_lib.file_store.write import FileStoreWrite
from storage_lib.log_store.log_store import LogStore, LogTransaction
from storage_lib.schema.bucketing import group_rows
from storage_lib.schema.table_schema import TableSchema
from storage_lib.table.input_rows import InputRows, Rows, record_batches
from storage_lib.table.log_part import BucketTransaction
from storage_lib.table.turn import Turn, TurnLease
from storage_lib.table.write_order import TableCommitMessage


class TableWrite:
    """The write side of one task. Not thread-safe.

    ``log`` is None when the log shall not hear of these rows. While rows are being written the lease of ``turn`` is
    kept beating, so that a long task does not lose its driver's turn. Close it by ``prepare_commit`` or ``abort``.
    """

    def __init__(
        self,
        *,
        table: str,
        schema: TableSchema,
        input_rows: InputRows,
        file_write: FileStoreWrite,
        log: LogStore | None,
        lease: TurnLease,
        turn: Turn | None,
    ) -> None:
        self._table = table
        self._schema = schema
        self._input_rows = input_rows
        self._file_write = file_write
        self._log = log
        self._lease = lease
        self._turn = turn
        self._transactions: dict[int, LogTransaction] = {}
        self._row_count = 0
        self._is_closed = False
        self._beating = ExitStack()
        if turn is not None:
            self._beating.enter_context(lease.beating(turn))

    def __enter__(self) -> Self:
        """For ``with``: what is neither prepared nor aborted at its end is aborted."""
        return self

    def __exit__(self, exception_type: type[BaseException] | None, *_: object) -> None:
        if exception_type is not None or not self._is_closed:
            self.abort()

    def write(self, rows: Rows) -> None:
        """Add rows, in order; ``_row_kind`` says what each means.

        Raises ``InvalidInputError`` for bad input: earlier batches are then only undone by ``abort``.
        """
        for batch in record_batches(rows):
            if batch.num_rows:
                self._write_batch(batch)

    def prepare_commit(self) -> TableCommitMessage:
        """Flush both stores: files durable, log records stored but not yet committed."""
        transactions = tuple(self._flush_log())
        files = self._file_write.prepare_commit()
        self._is_closed = True
        self._beating.close()
        return TableCommitMessage(files=files, transactions=transactions, row_count=self._row_count)

    def abort(self) -> None:
        """Delete the files and abort the transactions of this task."""
        self._is_closed = True
        self._beating.close()
        try:
            self._file_write.abort()
        finally:
            for transaction in self._transactions.values():
                transaction.abort()

    def _write_batch(self, batch: pa.RecordBatch) -> None:
        rows, kinds = self._input_rows.conform(batch)
        of_bucket: dict[int, list[np.ndarray]] = {}
        for partition, bucket, indices in group_rows(rows, self._schema):
            everything = len(indices) == rows.num_rows
            group = rows if everything else rows.take(pa.array(indices))
            group_kinds = kinds if everything else kinds.take(pa.array(indices))
            self._file_write.write(partition, bucket, group, group_kinds)
            of_bucket.setdefault(bucket, []).append(indices)
        if self._log is not None:
            for bucket, parts in of_bucket.items():
                self._write_log(self._log, bucket, parts, rows, kinds)
        self._row_count += rows.num_rows

    def _write_log(
        self, log: LogStore, bucket: int, parts: list[np.ndarray], rows: pa.RecordBatch, kinds: pa.Array
    ) -> None:
        # One log write per bucket and batch, in arrival order, however many partitions the rows are in.
        indices = parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))
        if len(indices) < rows.num_rows:
            rows, kinds = rows.take(pa.array(indices)), kinds.take(pa.array(indices))
        with self._fencing_explained(bucket):
            if bucket not in self._transactions:
                if self._turn is not None:
                    # To begin is to fence whoever has the slot, and that may be the one who took our turn over.
                    self._lease.check(self._turn)
                self._transactions[bucket] = log.begin(bucket)
            self._transactions[bucket].write(bucket, rows, kinds)

    def _flush_log(self) -> Iterator[BucketTransaction]:
        for bucket, transaction in self._transactions.items():
            with self._fencing_explained(bucket):
                ranges = transaction.flush()
            for written in ranges:
                yield BucketTransaction(handle=transaction.handle, written=written)

    def _fencing_explained(self, bucket: int) -> AbstractContextManager[None]:
        return _FencingExplained(self._table, bucket, self._lease, self._turn)


class _FencingExplained(AbstractContextManager[None]):
    """Tells the two reasons apart for which a task may find its log transaction fenced.

    Either a later turn took over, or the turn is still ours and another task of the same write has rows of the
    same bucket; only the engine's distribution can mend the latter.
    """

    def __init__(self, table: str, bucket: int, lease: TurnLease, turn: Turn | None) -> None:
        self._table = table
        self._bucket = bucket
        self._lease = lease
        self._turn = turn

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, LeaseLostError) and self._turn is not None:
            self._lease.check(self._turn)
            raise two_tasks_for_one_bucket(self._table, self._bucket) from error


def two_tasks_for_one_bucket(table: str, bucket: int) -> InvalidInputError:
    """The refusal of a write that was not distributed by bucket."""
    message = (
        f"table {table}: two tasks of one write have rows of bucket {bucket}, so their order in the log would be "
        "arbitrary. Distribute the rows by bucket: use storage_lib.spark.write(df, table) or "
        "write_stream(df, table, ...) in place of df.write"
    )
    return InvalidInputError(message)
