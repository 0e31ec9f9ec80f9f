"""Positions of a materialized table: the snapshots of its sources whose answer it holds.

They are source offsets (docs/format.md): a source is named ``<uuid>@<branch>``, partition 0 holds the id of its
snapshot, and the source's id tells that snapshot from a later one with the same number, which another engine may create
after a rollback. ``@definition`` names the query, whose id is a hash of its text and settings: a refresh with an older
query conflicts with one with the current query. ``@columns`` names the columns that the query reads, because an ALTER
changes an answer without a snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.schema.options.materialized_table import catalogs_text
from storage_lib.schema.options.value_settings import settings_text

if TYPE_CHECKING:
    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.schema.options.materialized_table import MaterializedTableDefinition
    from storage_lib.schema.table_schema import DataField
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.protocol.source_offsets import SourceOffsets

DEFINITION = "@definition"
COLUMNS = "@columns"
_PARTITION = 0
_HASH_LENGTH = 16


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """A snapshot of a source; id 0 is the empty table. ``mark`` identifies the snapshot beyond its number."""

    snapshot_id: int
    mark: str | None = None

    def to_offsets(self) -> LogOffsets:
        """Return the position as offsets of a source."""
        return LogOffsets({_PARTITION: self.snapshot_id}, self.mark)


def recorded_position(positions: SourceOffsets, source: str) -> SourcePosition | None:
    """Return the position of a source that a snapshot stores; None if it stores none."""
    offsets = positions.of(source)
    return None if offsets is None else SourcePosition(offsets.of(_PARTITION), offsets.log_id)


def source_name(table: DynamicTable) -> str:
    """Return the name under which a table's position is stored."""
    return f"{table.uuid}@{table.context.branch}"


def position_of(snapshot: Snapshot | None) -> SourcePosition:
    """Return the position of a snapshot; None is the table before its first one."""
    if snapshot is None:
        return SourcePosition(0)
    return SourcePosition(snapshot.id, f"{snapshot.time_millis}-{snapshot.commit_user}-{snapshot.commit_identifier}")


def position_of_columns(columns: Mapping[str, Sequence[DataField]]) -> SourcePosition:
    """Return the position of the columns that a query reads, by source: equal for the same columns and types."""
    read = [(name, field.id, field.name, str(field.type)) for name, of in sorted(columns.items()) for field in of]
    return SourcePosition(0, sha256(repr(read).encode()).hexdigest()[:_HASH_LENGTH])


def position_of_definition(definition: MaterializedTableDefinition) -> SourcePosition:
    """Return the position of a query: equal for equal texts in the same database, under the same settings of Spark."""
    text = f"{definition.database}\n{definition.query}"
    if definition.settings is not None:
        text += f"\n{settings_text(definition.settings)}"
    if definition.catalogs:
        text += f"\n{catalogs_text(definition.catalogs)}"
    return SourcePosition(0, sha256(text.encode()).hexdigest()[:_HASH_LENGTH])
