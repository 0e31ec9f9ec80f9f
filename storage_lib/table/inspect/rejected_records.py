"""Rejected records of the newest snapshot: how many there are, and the records themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.errors import NotFoundError
from storage_lib.schema.types.rejected_schema import STORED_SCHEMA

if TYPE_CHECKING:
    from storage_lib.file_store.rejected.rejected_pointer import RejectedPointer
    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.table.protocol.source_offsets import SourceOffsets
    from storage_lib.table.protocol.table_context import TableContext

_VIEWED = {"time": "time_millis", "timestamp": "timestamp_millis"}


class RejectedRecords:
    """Reads the rejected records of one table."""

    def __init__(self, context: TableContext, *, source_offsets: Callable[[Snapshot | None], SourceOffsets]) -> None:
        self._snapshots = context.file_store.snapshots
        self._directory = context.file_store.rejected
        self._source_offsets = source_offsets

    def pointer(self) -> RejectedPointer | None:
        """Return what the newest snapshot says of its rejected records; None if it has none."""
        return self._source_offsets(self._snapshots.latest()).rejected

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the rejected records with the columns of ``schema``, the system table's."""
        for records in self._files():
            columns = [records[_VIEWED.get(name, name)].cast(schema.field(name).type) for name in schema.names]
            yield from pa.table(columns, schema=schema).to_batches()

    def read(self) -> pa.Table:
        """Return all rejected records as they are stored, with their ids."""
        return pa.concat_tables([STORED_SCHEMA.empty_table(), *self._files()])

    def _files(self) -> Iterator[pa.Table]:
        """Yield the records file by file; once more from the start if the first file has just expired."""
        pointer = self.pointer()
        while pointer is not None:
            started = False
            try:
                for records in self._directory.read(pointer):
                    started = True
                    yield records
            except NotFoundError:
                newer = self.pointer()
                if started or newer == pointer:
                    raise
                pointer = newer
            else:
                return
