"""Completes deletions that have only their keys, because the log needs whole rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.schema.types.row_kind import RowKind
from storage_lib.table.changes.complete_deletes import with_kind_column, with_whole_deletes
from storage_lib.table.input.input_rows import InputRows

if TYPE_CHECKING:
    from storage_lib.schema.table_schema import TableSchema
    from storage_lib.table.protocol.table_context import TableContext
    from storage_lib.table.write.pre_images import PreImages

_ROWS_AT_ONCE = 65_536
_BYTES_AT_ONCE = 64 << 20


class TaskDeletions:
    """Completes the deletions that one task writes."""

    def __init__(self, context: TableContext, pre_images: PreImages) -> None:
        self._context = context
        self._pre_images = pre_images
        self._kind_column = context.options.row_kind_field

    def completed(
        self, batches: Iterable[pa.RecordBatch], flush: Callable[[], None]
    ) -> Iterator[pa.RecordBatch | pa.Table]:
        """Yield the same rows; deletions that lack columns are completed, or dropped if no such row is stored.

        Write each result before requesting the next: ``flush`` is called before a look-up, and must add all rows
        written so far to the pre-images.
        """
        held: list[pa.RecordBatch] = []
        row_count = byte_count = 0
        for batch in batches:
            if not self._has_deletions(batch):
                yield from self._whole(held, flush)
                yield batch
                held, row_count, byte_count = [], 0, 0
                continue
            held.append(batch)
            row_count, byte_count = row_count + batch.num_rows, byte_count + batch.nbytes
            if row_count >= _ROWS_AT_ONCE or byte_count >= _BYTES_AT_ONCE:
                yield from self._whole(held, flush)
                held, row_count, byte_count = [], 0, 0
        yield from self._whole(held, flush)

    def _has_deletions(self, batch: pa.RecordBatch) -> bool:
        if self._kind_column not in batch.schema.names:
            return False
        return bool(pc.any(pc.equal(batch.column(self._kind_column), RowKind.DELETE.symbol)).as_py())

    def _whole(self, batches: list[pa.RecordBatch], flush: Callable[[], None]) -> Iterable[pa.RecordBatch | pa.Table]:
        if not batches:
            return ()

        def find(keys: pa.Table) -> pa.Table:
            flush()
            # Keep the rows: a log with pre-images needs them again.
            return self._pre_images.of(keys, keep=True).cast(self._lenient_schema.arrow_schema)

        conformed = [self._input.conform(batch, fill=False) for batch in batches]
        rows = pa.Table.from_batches([each for each, _ in conformed])
        kinds = pa.concat_arrays([each for _, each in conformed])
        whole, kinds = with_whole_deletes(self._context.schema.primary_keys, rows, kinds, find)
        return batches if whole is rows else (with_kind_column(whole, kinds, self._kind_column),)

    @cached_property
    def _input(self) -> InputRows:
        ignore_delete = self._context.options.ignore_delete
        return InputRows(self._context.name, self._lenient_schema, self._kind_column, ignore_delete=ignore_delete)

    @cached_property
    def _lenient_schema(self) -> TableSchema:
        """The table's schema with all columns outside the primary key nullable: deletions need only the key."""
        schema = self._context.schema
        fields = [
            each if each.name in schema.primary_keys else replace(each, type=each.type.with_nullable(True))
            for each in schema.fields
        ]
        return replace(schema, fields=tuple(fields))
