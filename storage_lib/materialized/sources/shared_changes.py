"""Changes of tables that this process has read, for the other materialized tables that read the same ones.

    snapshots of a table ─▶ old and new rows of the columns that any of its readers has asked for

Snapshots never change, so the rows are found by the names of two manifest lists, which no other commit has: an id of a
snapshot may be used again after a rollback.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.catalog.table_cache import TableKey, key_of

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable

_KEPT_BYTES_MAX = 64 << 20
_TABLES_MAX = 256


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Rows of a table that were removed and added between two snapshots; both may contain equal rows."""

    old: pa.Table
    new: pa.Table

    def has(self, columns: Sequence[str]) -> bool:
        """Return whether the rows have all of these columns."""
        return set(columns) <= set(self.old.column_names)

    def select(self, columns: Sequence[str]) -> ChangedRows:
        """Return the same rows with these columns only."""
        return ChangedRows(self.old.select(columns), self.new.select(columns))

    @property
    def size_bytes(self) -> int:
        """Memory of the rows."""
        return int(self.old.nbytes + self.new.nbytes)


_Range = tuple[TableKey, str, str]


class SharedChanges:
    """The changes that were read last, up to ``bytes_max`` bytes. For threads."""

    def __init__(self, bytes_max: int = _KEPT_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._kept: OrderedDict[_Range, ChangedRows] = OrderedDict()
        self._wanted: OrderedDict[TableKey, tuple[str, ...]] = OrderedDict()

    def rows(self, table: DynamicTable, columns: Sequence[str], before: int, after: int) -> ChangedRows:
        """Return the changes of columns between two snapshots. Raises as ``DynamicTable.changes``."""
        key = _range(table, before, after)
        with self._lock:
            shared = self._kept.get(key)
            if shared is not None and shared.has(columns):
                self._kept.move_to_end(key)
                return shared.select(columns)
            wanted = tuple(dict.fromkeys([*self._wanted.pop(key[0], ()), *columns]))
            self._wanted[key[0]] = wanted
            while len(self._wanted) > _TABLES_MAX:
                self._wanted.popitem(last=False)
        found = _read(table, wanted, before, after)
        with self._lock:
            self._kept.pop(key, None)
            self._kept[key] = found
            while sum(each.size_bytes for each in self._kept.values()) > self._bytes_max:
                self._kept.popitem(last=False)
        return found.select(columns)


def _range(table: DynamicTable, before: int, after: int) -> _Range:
    start, end = (table.inspect.snapshot(each) for each in (before, after))
    return key_of(table), start.delta_manifest_list, end.delta_manifest_list


def _read(table: DynamicTable, columns: Sequence[str], before: int, after: int) -> ChangedRows:
    schema = pa.schema([table.arrow_schema.field(name) for name in columns])
    changes = table.changes(start_snapshot_id=before, end_snapshot_id=after).read_all()
    added = pc.starts_with(changes.column(changes.num_columns - 1), "+")
    keys = list(table.schema.primary_keys)
    if keys:
        touched = changes.select(keys).group_by(keys).aggregate([]).select(keys)
        of_keys = pa.schema([table.arrow_schema.field(name) for name in keys])
        old = table.lookup(touched.cast(of_keys), columns=columns, snapshot_id=before)
    else:
        old = changes.filter(pc.invert(added)).select(columns)
    return ChangedRows(old.cast(schema), changes.filter(added).select(columns).cast(schema))
