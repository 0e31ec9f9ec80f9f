"""Batch reads of one table under one version of its schema: which snapshot, which files, which columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.table.planned_read import PlannedRead

if TYPE_CHECKING:
    from storage_lib.file_store.plan import Plan
    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.file_store.split import Split
    from storage_lib.file_store.store import FileStore
    from storage_lib.schema.predicate import Predicate
    from storage_lib.schema.table_options import TableOptions
    from storage_lib.schema.table_schema import TableSchema


class BatchReads:
    """Plans and reads snapshots; ``predicate`` is always the user's, not yet validated."""

    def __init__(self, *, schema: TableSchema, options: TableOptions, file_store: FileStore) -> None:
        self._schema = schema
        self._options = options
        self._file_store = file_store

    @property
    def only_compacted(self) -> bool:
        """Other engines leave level 0 of a table with deletion vectors out of batch reads, and so do we."""
        has_vectors = self._options.deletion_vectors_enabled and not self._options.deletion_vectors_merge_on_read
        return has_vectors and bool(self._schema.primary_keys)

    def plan(self, snapshot: Snapshot | None, predicate: Predicate | None) -> Plan:
        """See ``DynamicTable.plan``."""
        valid = None if predicate is None else predicate.validated(self._schema)
        of_partitions = None if valid is None else valid.restrict_to(frozenset(self._schema.partition_keys))
        return self._file_store.scan.plan(
            snapshot, partition_filter=of_partitions, predicate=valid, only_compacted=self.only_compacted
        )

    def planned(
        self, snapshot: Snapshot | None, columns: Sequence[str] | None, filter_: Predicate | None
    ) -> PlannedRead:
        """A whole read. Raises ``InvalidInputError`` for unknown columns and misfit literals."""
        wanted = [field.name for field in self._schema.fields] if columns is None else list(columns)
        fields = [self._schema.arrow_schema.field(self._schema.field(name).name) for name in wanted]
        valid = None if filter_ is None else filter_.validated(self._schema)
        return PlannedRead(
            schema=pa.schema(fields),
            splits=self.plan(snapshot, valid).splits(self._options.source_split_target_size_bytes),
            read_split=lambda split: self._file_store.read.read(split, wanted, valid),
        )

    def read_split(
        self, split: Split, columns: Sequence[str] | None, predicate: Predicate | None
    ) -> Iterator[pa.RecordBatch]:
        """See ``DynamicTable.read_split``."""
        valid = None if predicate is None else predicate.validated(self._schema)
        return self._file_store.read.read(split, columns, valid)
