"""The rows of a table's snapshot as a SELECT of DuckDB.

- Files whose rows need no merge are read by DuckDB.
- Large files below a few newer rows are read by DuckDB, without the keys of the newer rows, which are merged here.
- Other files are merged here, if they are small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.duckdb.file_rows import file_groups, select_of_files
from storage_lib.materialized.algebra.in_duckdb.duckdb_text import identifier
from storage_lib.materialized.engine import EngineRefusalError

if TYPE_CHECKING:
    from storage_lib.duckdb.duckdb_session import DuckDbSession
    from storage_lib.file_store.planning.plan import Plan
    from storage_lib.materialized.algebra import ValueType
    from storage_lib.table.builders.read_builder import ReadBuilder
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.read.unmerged_file import UnmergedFile

MERGED_BYTES_MAX = 32 << 20
"""Size of files that this process merges."""

_MERGED_ROWS_MAX = 2_000_000


@dataclass(frozen=True, slots=True)
class SnapshotRows:
    """Writes a SELECT of ``columns``, which have these types, from snapshots of a table."""

    session: DuckDbSession
    table: DynamicTable
    columns: Mapping[str, ValueType]

    def select(self, snapshot_id: int) -> str:
        """Return a SELECT of the rows of a snapshot (0: no rows).

        Raises ``EngineRefusalError`` if DuckDB and this process don't read them well, and ``SnapshotExpiredError`` or
        ``NotFoundError`` for the snapshot.
        """
        if snapshot_id == 0:
            return self._nothing()
        read = self.table.new_read(columns=list(self.columns), snapshot_id=snapshot_id)
        divided = read.plan_divided()
        self.session.add_size(divided.unmerged.size_bytes + divided.merged.size_bytes)
        parts = []
        if divided.unmerged.entries:
            selects = self._of_files(read, read.unmerged_files(divided.unmerged), list(self.columns))
            parts += [self._merged(read, divided.unmerged)] if selects is None else selects
        if divided.merged.entries:
            parts += self._without_replaced(read, divided.merged) or [self._merged(read, divided.merged)]
        return " UNION ALL ".join(parts) or self._nothing()

    def of(self, rows: pa.Table) -> str:
        """Return a SELECT of rows in this process: ``columns`` with their types, then all other columns as they are."""
        return select_of_rows(self.session, rows, self.columns)

    def _nothing(self) -> str:
        items = ", ".join(f"CAST(NULL AS {kind.duckdb}) AS {identifier(name)}" for name, kind in self.columns.items())
        return f"SELECT {items} WHERE false"

    def _of_files(self, read: ReadBuilder, files: Sequence[UnmergedFile], names: Sequence[str]) -> list[str] | None:
        """Return one SELECT for each group of files that are read alike; None if DuckDB can't read all of them."""
        types = {name: self.columns.get(name) for name in names}
        selects = [select_of_files(read, group, types) for group in file_groups(files)]
        return None if any(each is None for each in selects) else [each for each in selects if each is not None]

    def _without_replaced(self, read: ReadBuilder, merged: Plan) -> list[str] | None:
        """Return the rows of large files without the keys of newer ones, and the newer rows; None to merge all."""
        runs = read.large_runs(merged)
        if runs is None:
            return None
        keys = list(self.table.schema.primary_keys)
        selects = self._of_files(read, runs.files, list(dict.fromkeys([*self.columns, *keys])))
        found = None if selects is None else read.newer_rows(runs, list(self.columns))
        if selects is None or found is None:
            return None
        newer = self.session.register(found.keys)
        same = " AND ".join(f"f.{identifier(key)} = k.{identifier(key)}" for key in keys)
        names = ", ".join(f"f.{identifier(name)}" for name in self.columns)
        older = [f"SELECT {names} FROM ({each}) AS f ANTI JOIN {newer} AS k ON {same}" for each in selects]
        return [*older, self.of(found.rows)]

    def _merged(self, read: ReadBuilder, plan: Plan) -> str:
        if plan.size_bytes > MERGED_BYTES_MAX or plan.row_count > _MERGED_ROWS_MAX:
            raise EngineRefusalError(f"table {self.table.name}: many rows of its files have to be merged")
        batches = [batch for split in read.splits(plan) for batch in read.read_split(split)]
        schema = pa.schema([self.table.arrow_schema.field(name) for name in self.columns])
        return self.of(pa.Table.from_batches(batches, schema))


def select_of_rows(session: DuckDbSession, rows: pa.Table, columns: Mapping[str, ValueType]) -> str:
    """Return a SELECT of rows in this process: ``columns`` with their types, then all other columns as they are."""
    name = session.register(rows)
    typed = {identifier(each): kind.duckdb for each, kind in columns.items()}
    items = [f"CAST({each} AS {kind}) AS {each}" for each, kind in typed.items()]
    others = [identifier(each) for each in rows.column_names if each not in columns]
    return f"SELECT {', '.join([*items, *others])} FROM {name}"
