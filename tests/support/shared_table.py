"""Table that this library and Paimon's Java core write alternately, and the result of applying its changelog."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from storage_lib import DynamicTable, WarehouseCatalog
from storage_lib.io.environment import system_environment
from storage_lib.io.local.local_file_io import LocalFileIO
from storage_lib.schema.table_schema import TableSchema, new_table_schema
from storage_lib.schema.types.row_kind import ROW_KIND_COLUMN, RowKind
from storage_lib.schema.types.type_spelling import parse_type
from tests.support.paimon_core import PaimonCore

IDENTIFIER = "db.t"
Row = tuple[Any, ...]
Change = tuple[RowKind, Row]


@dataclass(frozen=True, kw_only=True)
class SharedTable:
    """Table in the warehouse ``home`` that holds only this table; the first column is the key."""

    core: PaimonCore
    home: Path
    schema: TableSchema

    @classmethod
    def made_by_java(
        cls,
        core: PaimonCore,
        home: Path,
        columns: Mapping[str, str],
        options: Mapping[str, str],
        *,
        partition: str = "",
    ) -> SharedTable:
        """Create a table by the Java core, with one bucket unless the options say otherwise."""
        key = next(iter(columns))
        schema = new_table_schema(
            [(name, parse_type(spelled)) for name, spelled in columns.items()],
            primary_keys=[key, *([partition] if partition else [])],
            partition_keys=[partition] if partition else [],
            options={"bucket": "1", **options},
            time_millis=0,
        )
        core.create(home, IDENTIFIER, schema)
        return cls(core=core, home=home, schema=schema)

    @classmethod
    def made_by_us(
        cls,
        core: PaimonCore,
        home: Path,
        columns: Mapping[str, str],
        options: Mapping[str, str],
        *,
        partition: str = "",
    ) -> SharedTable:
        """Create a table by this library, with the same defaults."""
        key = next(iter(columns))
        table = _catalog(home).create_table(
            IDENTIFIER,
            {name: spelled.removesuffix(" NOT NULL") for name, spelled in columns.items()},
            primary_key=[key, *([partition] if partition else [])],
            partition_by=[partition] if partition else [],
            options={"bucket": "1", **options},
        )
        return cls(core=core, home=home, schema=table.schema)

    def ours(self) -> DynamicTable:
        """Reload the table through this library, without cached state."""
        return _catalog(self.home).load_table(IDENTIFIER)

    def append_by_us(self, changes: Iterable[Change]) -> None:
        """Append changes in one commit of this library."""
        table = self.ours()
        table.append(arrow_of(table, list(changes)))

    def append_by_java(self, changes: Iterable[Change]) -> None:
        """Append changes in one commit of the Java core."""
        changes = list(changes)
        rows, kinds = [row for _, row in changes], [kind for kind, _ in changes]
        self.core.write(self.home, IDENTIFIER, rows, self.schema, kinds)

    def compact_by_java(self) -> None:
        """Run a full compaction by the Java core."""
        self.core.compact(self.home, IDENTIFIER)

    def rows_by_us(self) -> list[Row]:
        """Return the sorted rows that this library reads."""
        return sorted_rows(tuple(row.values()) for row in self.ours().to_arrow().to_pylist())

    def rows_by_java(self) -> list[Row]:
        """Return the sorted rows that the Java core reads."""
        return sorted_rows(self.core.read(self.home, IDENTIFIER, self.schema))

    def stream_by_java(self) -> list[Change]:
        """Return the changes of a streaming read by the Java core from snapshot 1."""
        return self.core.stream(self.home, IDENTIFIER, self.schema)

    def rows_of_stream(self) -> list[Row]:
        """Return the sorted rows that result from the stream, each change checked against the rows before it."""
        return sorted_rows(folded(self.stream_by_java(), key_count=len(self.schema.primary_keys)).values())


def folded(changes: Iterable[Change], *, key_count: int = 1, strict: bool = True) -> dict[Row, Row]:
    """Return rows by key (the first columns); if ``strict``, old rows must equal the stored ones and inserts be new."""
    rows: dict[Row, Row] = {}
    for kind, row in changes:
        key = row[:key_count]
        if strict and kind in (RowKind.UPDATE_BEFORE, RowKind.DELETE):
            assert rows.get(key) == row, f"{kind.symbol} {row} where {rows.get(key)} was"
        if strict and kind is RowKind.INSERT:
            assert key not in rows, f"+I {row} where {rows.get(key)} was"
        if kind in (RowKind.UPDATE_BEFORE, RowKind.DELETE):
            rows.pop(key, None)
        else:
            rows[key] = row
    return rows


def arrow_of(table: DynamicTable, changes: Sequence[Change]) -> pa.Table:
    """Convert changes to an Arrow table with the row kinds."""
    columns = [
        pa.array([row[place] for _, row in changes], field.type) for place, field in enumerate(table.arrow_schema)
    ]
    kinds = pa.array([kind.symbol for kind, _ in changes])
    return pa.table([*columns, kinds], names=[*table.arrow_schema.names, ROW_KIND_COLUMN])


def sorted_rows(rows: Iterable[Row]) -> list[Row]:
    """Sort rows that may contain nulls."""
    return sorted(rows, key=repr)


def _catalog(home: Path) -> WarehouseCatalog:
    environment = system_environment(LocalFileIO(durable=False))
    return WarehouseCatalog(str(home), {"log.system": "none"}, environment=environment)
