"""Deletions that a task brings with their keys alone -> whole ones, as the log has them.

What came for a key before is in the files that this task has written, or in those of the snapshot that its turn began
upon: the task is the only one with rows of its buckets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import SnapshotExpiredError
from storage_lib.schema.row_kind import RowKind
from storage_lib.table.complete_deletes import may_lack_something, with_kind_column, with_whole_deletes
from storage_lib.table.input_rows import InputRows

if TYPE_CHECKING:
    from storage_lib.file_store.commit_message import CommitMessage
    from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.table_write import TableWrite
    from storage_lib.table.write_order import WriteOrder

_ROWS_AT_ONCE = 65_536
_BYTES_AT_ONCE = 64 << 20


class TaskDeletions:
    """Completes what one task is going to write."""

    def __init__(self, table: DynamicTable, order: WriteOrder, write: TableWrite) -> None:
        self._table = table
        self._order = order
        self._write = write
        schema = table.schema
        fields = [
            each if each.name in schema.primary_keys else replace(each, type=each.type.with_nullable(True))
            for each in schema.fields
        ]
        lenient = replace(schema, fields=tuple(fields))
        self._arrow_schema = lenient.arrow_schema
        self._input = InputRows(
            table.name,
            lenient,
            table.options.row_kind_field,
            ignore_delete=table.options.ignore_delete,
        )

    @staticmethod
    def are_looked_up(table: DynamicTable, order: WriteOrder) -> bool:
        """Whether the log wants whole rows, and the files know them: an eventual table's are behind its log."""
        has_log = table.log is not None and order.writes_log and not table.log_comes_first
        return has_log and bool(table.schema.primary_keys) and not order.is_difference

    def completed(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch | pa.Table]:
        """The same rows; of deletions that lack something the whole ones, or none if there is nothing to delete.

        Each is to be written before the next is asked for.
        """
        held: list[pa.RecordBatch] = []
        row_count = byte_count = 0
        for batch in batches:
            if not self._has_deletions(batch):
                yield from self._whole(held)
                yield batch
                held, row_count, byte_count = [], 0, 0
                continue
            held.append(batch)
            row_count, byte_count = row_count + batch.num_rows, byte_count + batch.nbytes
            if row_count >= _ROWS_AT_ONCE or byte_count >= _BYTES_AT_ONCE:
                yield from self._whole(held)
                held, row_count, byte_count = [], 0, 0
        yield from self._whole(held)

    def _has_deletions(self, batch: pa.RecordBatch) -> bool:
        name = self._table.options.row_kind_field
        if name not in batch.schema.names:
            return False
        return bool(pc.any(pc.equal(batch.column(name), RowKind.DELETE.symbol)).as_py())

    def _whole(self, batches: list[pa.RecordBatch]) -> Iterable[pa.RecordBatch | pa.Table]:
        if not batches:
            return ()
        conformed = [self._input.conform(batch) for batch in batches]
        rows = pa.Table.from_batches([each for each, _ in conformed])
        kinds = pa.concat_arrays([each for _, each in conformed])
        if not may_lack_something(self._table, rows, kinds).any():
            return batches
        rows, kinds = with_whole_deletes(self._table, rows, kinds, find=self._rows_of)
        return (with_kind_column(rows, kinds, self._table.options.row_kind_field),)

    def _rows_of(self, keys: pa.Table) -> pa.Table:
        snapshots = self._table.file_store.snapshots
        try:
            base = None if self._order.base_snapshot_id is None else snapshots.load(self._order.base_snapshot_id)
        except SnapshotExpiredError:
            # An append in another turn since fails this commit anyway.
            base = snapshots.latest()
        found = self._table.rows_of_keys(base, keys, added=_by_bucket(self._write.files_so_far()))
        return found.cast(self._arrow_schema)


def _by_bucket(messages: Sequence[CommitMessage]) -> Mapping[tuple[bytes, int], list[DataFileMeta]]:
    added: dict[tuple[bytes, int], list[DataFileMeta]] = {}
    for each in messages:
        added.setdefault((each.partition, each.bucket), []).extend(each.increment.new_files)
    return added
