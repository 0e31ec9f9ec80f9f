"""A dynamic table of the catalog as a source of a query; its states are its snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from storage_lib.catalog.table_cache import table_at
from storage_lib.errors import NotFoundError, SnapshotExpiredError
from storage_lib.file_store.snapshot.snapshot import CommitKind
from storage_lib.lakes.lake_kinds import LAKES
from storage_lib.materialized.sources.full_reasons import why_full
from storage_lib.materialized.sources.source import Lineage, Source
from storage_lib.materialized.sources.source_delta import TableDelta, source_delta, stored_rows
from storage_lib.materialized.sources.source_positions import (
    SourcePosition,
    position_of,
    recorded_position,
    source_name,
)

if TYPE_CHECKING:
    from storage_lib.schema.table_schema import TableSchema
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.protocol.table_address import TableAddress


def source_at(home: TableAddress, name: str) -> DynamicTable:
    """Load ``database.table`` from the catalog of ``home``; ``NotFoundError`` if it does not exist."""
    return table_at(replace(home, name=name))


@dataclass(frozen=True, slots=True)
class OwnSource(Source):
    """A ``Source`` of the catalog of the query."""

    table: DynamicTable

    @property
    def schema(self) -> TableSchema:
        """See ``Source``."""
        return self.table.schema

    @property
    def key(self) -> str:
        """See ``Source``."""
        return source_name(self.table)

    def newest(self) -> int:
        """See ``Source``."""
        return self.table.inspect.latest_snapshot_id() or 0

    def position(self, number: int) -> SourcePosition:
        """See ``Source``."""
        return position_of(self.table.inspect.snapshot(number) if number else None)

    def watermark(self, number: int) -> int | None:
        """See ``Source``."""
        return self.table.inspect.snapshot(number).watermark if number else None

    def named(self, number: int) -> str:
        """See ``Source``."""
        return f"snapshot {number}" if number else "the empty table"

    def behind_since(self, reached: int, newest: int) -> int:
        """See ``Source``."""
        if reached >= newest:
            # The table was rolled back or recreated.
            return 0
        try:
            return self.table.inspect.snapshot(reached + 1).time_millis
        except (NotFoundError, SnapshotExpiredError):
            return 0

    def row_count(self, number: int) -> int:
        """See ``Source``."""
        return stored_rows(self.table, number)

    def changed_row_count(self, before: int, after: int) -> int:
        """See ``Source``."""
        if before == 0:
            return stored_rows(self.table, after)
        between = (self.table.inspect.snapshot(each) for each in range(before + 1, after + 1))
        return sum(0 if each.commit_kind is CommitKind.COMPACT else abs(each.delta_record_count) for each in between)

    def lineage(self, number: int) -> Lineage:
        """See ``Source``."""
        return lineage(self.table, number)

    def agreeing_with(self, key: str, number: int, newest: int, oldest: int) -> tuple[int, Lineage] | None:
        """See ``Source``."""
        for snapshot_id in self._earlier(newest, oldest, number if key == self.key else None):
            try:
                found = lineage(self.table, snapshot_id)
            except (NotFoundError, SnapshotExpiredError):
                return None
            if found.get(key, number) <= number:
                return snapshot_id, found
        return None

    def why_full(self, name: str, columns: Sequence[str], recorded: SourcePosition | None, newest: int) -> str | None:
        """See ``Source``."""
        return why_full(name, self.table, columns, recorded, newest)

    def delta(self, columns: Sequence[str], before: int, after: int) -> TableDelta:
        """See ``Source``."""
        return source_delta(self.table, columns, before, after)

    def _earlier(self, newest: int, oldest: int, exactly: int | None) -> Iterator[int]:
        """Yield the ids before ``newest``, newest first; only ``exactly`` if the wanted snapshot is known."""
        first = max(oldest, self.table.inspect.earliest_snapshot_id() or 1)
        if exactly is not None:
            yield from (exactly,) if first <= exactly else ()
            return
        yield from range(newest - 1, first - 1, -1)


def lineage(table: DynamicTable, snapshot_id: int) -> Lineage:
    """Return the snapshots from which a snapshot was computed, directly and indirectly, and itself.

    Sources that were dropped, and those of expired snapshots, are left out. Tables of other formats have no sources.
    """
    found = {source_name(table): snapshot_id}
    definition = table.definition
    if definition is None or snapshot_id == 0:
        return found
    positions = table.inspect.source_positions(snapshot_id)
    for key, offsets in positions.positions.items():
        if key.endswith(tuple(f"@{kind}" for kind in LAKES)):
            found[key] = offsets.of(0)
    for name in definition.sources:
        try:
            upstream = source_at(table.address, name)
            position = recorded_position(positions, source_name(upstream))
            of_upstream = {} if position is None else lineage(upstream, position.snapshot_id)
        except (NotFoundError, SnapshotExpiredError):
            continue
        for key, each in of_upstream.items():
            found[key] = min(each, found.get(key, each))
    return found
