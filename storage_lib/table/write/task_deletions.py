"""Deletions that a task brings with their keys alone -> whole ones, as the log has them.

What came for a key before is in the files that this task has written, or in those of the snapshot that its turn began
upon: the task is the only one with rows of its buckets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.schema.types.row_kind import RowKind
from storage_lib.table.changes.complete_deletes import with_kind_column, with_whole_deletes
from storage_lib.table.input.input_rows import InputRows

if TYPE_CHECKING:
    from storage_lib.file_store.commit_message import CommitMessage
    from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.schema.options.table_options import TableOptions
    from storage_lib.schema.table_schema import TableSchema
    from storage_lib.table.read.point_lookup import PointLookup

_ROWS_AT_ONCE = 65_536
_BYTES_AT_ONCE = 64 << 20


class TaskDeletions:
    """Completes what one task is going to write."""

    def __init__(
        self,
        *,
        table: str,
        schema: TableSchema,
        options: TableOptions,
        base: Snapshot | None,
        lookup: PointLookup,
        files_so_far: Callable[[], Sequence[CommitMessage]],
    ) -> None:
        """``base`` is what the turn began upon, ``files_so_far`` what the task has written since."""
        self._base = base
        self._lookup = lookup
        self._files_so_far = files_so_far
        self._primary_keys = schema.primary_keys
        self._kind_column = options.row_kind_field
        fields = [
            each if each.name in schema.primary_keys else replace(each, type=each.type.with_nullable(True))
            for each in schema.fields
        ]
        lenient = replace(schema, fields=tuple(fields))
        self._arrow_schema = lenient.arrow_schema
        self._input = InputRows(table, lenient, options.row_kind_field, ignore_delete=options.ignore_delete)

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
        if self._kind_column not in batch.schema.names:
            return False
        return bool(pc.any(pc.equal(batch.column(self._kind_column), RowKind.DELETE.symbol)).as_py())

    def _whole(self, batches: list[pa.RecordBatch]) -> Iterable[pa.RecordBatch | pa.Table]:
        if not batches:
            return ()
        conformed = [self._input.conform(batch, fill=False) for batch in batches]
        rows = pa.Table.from_batches([each for each, _ in conformed])
        kinds = pa.concat_arrays([each for _, each in conformed])
        whole, kinds = with_whole_deletes(self._primary_keys, rows, kinds, self._rows_of)
        return batches if whole is rows else (with_kind_column(whole, kinds, self._kind_column),)

    def _rows_of(self, keys: pa.Table) -> pa.Table:
        found = self._lookup.rows_of(self._base, keys, added=_by_bucket(self._files_so_far()))
        return found.cast(self._arrow_schema)


def _by_bucket(messages: Sequence[CommitMessage]) -> Mapping[tuple[bytes, int], list[DataFileMeta]]:
    added: dict[tuple[bytes, int], list[DataFileMeta]] = {}
    for each in messages:
        added.setdefault((each.partition, each.bucket), []).extend(each.increment.new_files)
    return added
