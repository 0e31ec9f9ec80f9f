"""Rejected records of the newest snapshot: how many there are, and the records themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import NotFoundError
from storage_lib.schema.types.rejected_schema import ID, STORED_SCHEMA
from storage_lib.table.inspect.system_table_schemas import REJECTED_RECORDS, SYSTEM_TABLES

if TYPE_CHECKING:
    from storage_lib.file_store.rejected.rejected_pointer import RejectedPointer
    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.table.protocol.source_offsets import SourceOffsets
    from storage_lib.table.protocol.table_context import TableContext

_VIEWED = {"time": "time_millis", "timestamp": "timestamp_millis"}


class RejectedRecords:
    """Reads the rejected records of one table."""

    def __init__(self, context: TableContext, *, source_offsets: Callable[[Snapshot | None], SourceOffsets]) -> None:
        self._table = context.name
        self._snapshots = context.file_store.snapshots
        self._directory = context.file_store.rejected
        self._source_offsets = source_offsets

    def count(self, snapshot: Snapshot | None) -> int:
        """Return how many rejected records a snapshot has, without reading them."""
        pointer = self.pointer(snapshot)
        return 0 if pointer is None else pointer.record_count

    def pointer(self, snapshot: Snapshot | None) -> RejectedPointer | None:
        """Return what a snapshot says of its rejected records; None if it has none."""
        return self._source_offsets(snapshot).rejected

    def count_since(self, time_millis: int, source: str) -> int:
        """Return how many records of a source were stored at or after a time; files with older ones are not read."""
        pointer = self._newest_pointer()
        if pointer is None or pointer.newest_millis < time_millis:
            return 0
        count = 0
        for each in self._directory.files_of(pointer):
            if each.newest_millis >= time_millis:
                records = self._directory.read_file(each.name, ["time_millis", "source"])
                is_new = pc.greater_equal(records["time_millis"], time_millis)
                count += records.filter(pc.and_(is_new, pc.equal(records["source"], source))).num_rows
        return count

    def of_keys(self, source: str, keys: pa.Array) -> pa.Table:
        """Return the rejected records of a source whose keys (binary, or null for none) are among ``keys``.

        Files without such a record are not read whole. They are stored as ``chosen`` returns them.
        """
        found = [STORED_SCHEMA.empty_table()]
        pointer = self._newest_pointer()
        for each in () if pointer is None else self._directory.files_of(pointer):
            records = self._directory.read_file(each.name, ["source", "key"])
            wanted = pc.and_(pc.equal(records["source"], source), pc.is_in(records["key"], keys))
            if pc.any(wanted).as_py():
                found.append(self._directory.read_file(each.name).filter(wanted))
        return pa.concat_tables(found)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rejected records with the columns of the system table."""
        for records in self._files(STORED_SCHEMA.names):
            yield from as_system_table(records).to_batches()

    def chosen(
        self,
        *,
        ids: Sequence[str] | None = None,
        source: str | None = None,
        column: str | None = None,
        parts: Sequence[str] = tuple(STORED_SCHEMA.names),
    ) -> pa.Table:
        """Return rejected records as they are stored: those with these ids, of a source, refused for a column.

        ``parts`` are the stored columns that are needed; others are not read, unless they are compared.
        Raises ``NotFoundError`` for an id that no record has.
        """
        wanted = [(name, [value]) for name, value in (("source", source), ("column", column)) if value is not None]
        if ids is not None:
            wanted.append((ID, list(ids)))
        read = list(dict.fromkeys([*parts, ID, *(name for name, _ in wanted)]))
        found = pa.schema([STORED_SCHEMA.field(name) for name in read]).empty_table()
        for records in self._files(read):
            is_wanted = [pc.is_in(records[name], value_set=pa.array(values, pa.string())) for name, values in wanted]
            found = pa.concat_tables([found, records.filter(reduce(pc.and_, is_wanted)) if is_wanted else records])
        missing = {*(ids or ())} - {*found[ID].to_pylist()}
        if missing and source is None and column is None:
            message = (
                f"table {self._table} has no rejected record {min(missing)!r}: it was re-ingested or deleted, or has "
                f"expired; {self._table}$rejected lists those it has"
            )
            raise NotFoundError(message)
        return found

    def _newest_pointer(self) -> RejectedPointer | None:
        return self.pointer(self._snapshots.latest())

    def _files(self, parts: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the records file by file; once more from the start if the first file has just expired."""
        pointer = self._newest_pointer()
        while pointer is not None:
            started = False
            try:
                for records in self._directory.read(pointer, parts):
                    started = True
                    yield records
            except NotFoundError:
                newer = self._newest_pointer()
                if started or newer == pointer:
                    raise
                pointer = newer
            else:
                return


def as_system_table(records: pa.Table) -> pa.Table:
    """Return stored records with the columns of the system table, whose times are timestamps."""
    schema = SYSTEM_TABLES[REJECTED_RECORDS]
    columns = [records[_VIEWED.get(name, name)].cast(schema.field(name).type) for name in schema.names]
    return pa.table(columns, schema=schema)
