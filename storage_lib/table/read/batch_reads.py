"""Batch reads of one table under one version of its schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.snapshot.schema_in_force import rewritten_since
from storage_lib.schema.filter.filter_text import Filter, as_predicate
from storage_lib.schema.placing.layout import has_same_rows
from storage_lib.table.protocol.table_context import TableContext
from storage_lib.table.read.cheapest_column import cheapest_column
from storage_lib.table.read.large_runs import (
    LargeRuns,
    NewerRows,
    large_runs,
    newer_rows,
    newest_version_stands,
    replaces_by_key,
)
from storage_lib.table.read.planned_read import PlannedRead
from storage_lib.table.read.unmerged_file import UnmergedFile

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from storage_lib.file_store.data_file.stored_columns import StoredColumns
    from storage_lib.file_store.merge_tree.standing.standing_rows import StandingRows
    from storage_lib.file_store.planning.partition_totals import PartitionTotals
    from storage_lib.file_store.planning.plan import DividedPlan, Plan
    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.file_store.split import Split
    from storage_lib.schema.filter.predicate import Predicate


class BatchReads:
    """Plans and reads snapshots; ``predicate`` is always the user's, not yet validated."""

    def __init__(self, context: TableContext) -> None:
        self._table = context.name
        self._schema = context.schema
        self._options = context.options
        self._file_store = context.file_store

    @property
    def only_compacted(self) -> bool:
        """Whether batch reads skip level 0, as other engines do for tables with deletion vectors."""
        has_vectors = self._options.deletion_vectors_enabled and not self._options.deletion_vectors_merge_on_read
        return has_vectors and bool(self._schema.primary_keys)

    def plan(self, snapshot: Snapshot | None, predicate: Filter | None) -> Plan:
        """See ``ReadBuilder.plan``. Raises ``InvalidInputError`` for a snapshot made after the table got a key."""
        valid, of_partitions = self._checked(snapshot, predicate)
        return self._file_store.scan.plan(
            snapshot, partition_filter=of_partitions, predicate=valid, only_compacted=self.only_compacted
        )

    def plan_divided(self, snapshot: Snapshot | None, predicate: Filter | None) -> DividedPlan:
        """See ``ReadBuilder.plan_divided``; raises as ``plan``."""
        valid, of_partitions = self._checked(snapshot, predicate)
        return self._file_store.scan.plan_divided(
            snapshot, partition_filter=of_partitions, predicate=valid, only_compacted=self.only_compacted
        )

    def totals(self, plan: DividedPlan, columns: Sequence[str]) -> tuple[PartitionTotals, ...] | None:
        """See ``ReadBuilder.totals``."""
        return self._file_store.scan.totals(plan, columns)

    def unmerged_files(self, unmerged: Plan) -> tuple[UnmergedFile, ...]:
        """See ``ReadBuilder.unmerged_files``."""
        read = self._file_store.read
        return tuple(UnmergedFile(path=read.path_of(entry), entry=entry) for entry in unmerged.entries)

    def large_runs(self, merged: Plan) -> LargeRuns | None:
        """See ``ReadBuilder.large_runs``."""
        if not replaces_by_key(self._schema, self._options):
            return None
        return large_runs(merged, self._file_store.read)

    def newer_rows(self, runs: LargeRuns, columns: Sequence[str]) -> NewerRows | None:
        """See ``ReadBuilder.newer_rows``."""
        arrow = self._schema.arrow_schema
        key_schema = pa.schema([arrow.field(name) for name in self._schema.primary_keys])
        row_schema = pa.schema([arrow.field(name) for name in columns])
        return newer_rows(runs, self._file_store.read, columns, key_schema, row_schema)

    def tells_standing_rows(self, merged: Plan) -> bool:
        """See ``ReadBuilder.tells_standing_rows``."""
        has_vectors = any(entry.file.deletion_file is not None for entry in merged.entries)
        return newest_version_stands(self._schema, self._options) and not has_vectors

    def standing_rows(self, split: Split) -> Iterator[StandingRows]:
        """See ``ReadBuilder.standing_rows``."""
        return self._file_store.read.standing_rows(split)

    def stored_columns(self, schema_id: int) -> StoredColumns:
        """See ``ReadBuilder.stored_columns``."""
        return self._file_store.read.stored_columns(schema_id, [field.name for field in self._schema.fields])

    def names_in_files(self, schema_id: int) -> frozenset[str]:
        """See ``ReadBuilder.names_in_files``."""
        return frozenset(field.name for field in self._file_store.version(schema_id).fields)

    def deleted_rows(self, file: UnmergedFile) -> npt.NDArray[np.int64]:
        """See ``ReadBuilder.deleted_rows``."""
        entry = file.entry
        return self._file_store.read.reader(entry.partition, entry.bucket).deleted_rows(entry.file)

    def _checked(
        self, snapshot: Snapshot | None, predicate: Filter | None
    ) -> tuple[Predicate | None, Predicate | None]:
        """Return the validated predicate, and its part on partition columns."""
        self._refuse_other_rows(snapshot)
        given = as_predicate(predicate)
        valid = None if given is None else given.validated(self._schema)
        return valid, None if valid is None else valid.restrict_to(frozenset(self._schema.partition_keys))

    def splits(self, plan: Plan, target_size_bytes: int | None = None) -> tuple[Split, ...]:
        """See ``ReadBuilder.splits``."""
        target = self._options.source_split_target_size_bytes if target_size_bytes is None else target_size_bytes
        return self._file_store.key_cuts.cut(plan.splits(target), target)

    def _refuse_other_rows(self, snapshot: Snapshot | None) -> None:
        """Refuse a snapshot from the other side of a rewrite: its files cannot be read under this schema."""
        if snapshot is None:
            # Otherwise a table or branch that was deleted since it was opened would look empty.
            self._file_store.check_still_there()
        if snapshot is None or snapshot.schema_id == self._schema.id:
            return
        made_under = self._file_store.version(snapshot.schema_id)
        if not has_same_rows(made_under, self._schema):
            if made_under.id > self._schema.id:
                raise InvalidInputError(str(rewritten_since(self._table, self._schema, made_under)))
            message = (
                f"table {self._table}: snapshot {snapshot.id} was made before the table got its primary key; read it "
                "by its number: snapshot_id=..., or VERSION AS OF"
            )
            raise InvalidInputError(message)

    def planned(self, snapshot: Snapshot | None, columns: Sequence[str] | None, filter_: Filter | None) -> PlannedRead:
        """Plan a whole read. Raises ``InvalidInputError`` for unknown columns and literals of the wrong type."""
        wanted = [field.name for field in self._schema.fields] if columns is None else list(columns)
        fields = [self._schema.arrow_schema.field(self._schema.field(name).name) for name in wanted]
        given = as_predicate(filter_)
        valid = None if given is None else given.validated(self._schema)
        return PlannedRead(
            table=self._table,
            schema=pa.schema(fields),
            splits=self.plan(snapshot, valid).splits(self._options.source_split_target_size_bytes),
            read_split=lambda split: self._file_store.read.read(split, wanted, valid),
        )

    def count(self, snapshot: Snapshot | None, filter_: Filter | None) -> int:
        """Return the number of rows that ``planned`` would read; reads one column if metadata does not suffice."""
        if filter_ is None:
            totals = self.totals(self.plan_divided(snapshot, None), ())
            if totals is not None:
                return sum(each.row_count for each in totals)
        read = self.planned(snapshot, [cheapest_column(self._schema)], filter_)
        return sum(batch.num_rows for batch in read.stream())

    def read_split(
        self, split: Split, columns: Sequence[str] | None, predicate: Filter | None
    ) -> Iterator[pa.RecordBatch]:
        """See ``ReadBuilder.read_split``."""
        given = as_predicate(predicate)
        valid = None if given is None else given.validated(self._schema)
        return self._file_store.read.read(split, columns, valid)
