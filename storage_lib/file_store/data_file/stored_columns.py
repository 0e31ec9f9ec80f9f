"""Locations of the wanted columns in files of each schema version, resolved once per version."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from storage_lib.file_store.data_file.file_layout import FileLayout
from storage_lib.file_store.data_file.key_value import KEY_PREFIX, SEQUENCE_NUMBER, VALUE_COUNT, VALUE_KIND
from storage_lib.schema.evolution.evolved_arrays import stands_as_it_is
from storage_lib.schema.evolution.schema_versions import SchemaVersions
from storage_lib.schema.types.data_types import DataType, TypeRoot

_SYSTEM_TYPES = {
    SEQUENCE_NUMBER: DataType(TypeRoot.BIGINT, nullable=False),
    VALUE_KIND: DataType(TypeRoot.TINYINT, nullable=False),
    VALUE_COUNT: DataType(TypeRoot.BIGINT, nullable=False),
}
_REMEMBERED = 256
"""Cached combinations of schema and wanted columns: enough for a few concurrent reads over a long schema history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredColumn:
    """Wanted column and its location in a file; ``name`` is None if the file is older than the column.

    ``stands_as_it_is``: values of the wanted Arrow type need no conversion.
    """

    wanted: pa.Field
    wanted_type: DataType
    name: str | None
    stored_type: DataType
    stands_as_it_is: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredColumns:
    """All wanted columns in order, and the Arrow schema of the result.

    ``are_whole``: they include every column of the table, so reading them reads every byte of its rows.
    """

    columns: tuple[StoredColumn, ...]
    schema: pa.Schema
    are_whole: bool


class ColumnResolution:
    """Finds the columns of one table's files. Thread-safe."""

    def __init__(self, layout: FileLayout, schemas: SchemaVersions) -> None:
        self._layout = layout
        self._schemas = schemas
        self._resolved = lru_cache(_REMEMBERED)(self._resolve)
        # Key columns are in a file twice, but are read once.
        self._of_rows = frozenset(
            name
            for name in layout.file_arrow_schema.names
            if not name.startswith(KEY_PREFIX) and name not in _SYSTEM_TYPES
        )

    def of(self, schema_id: int, names: tuple[str, ...]) -> StoredColumns:
        """Return the columns ``names`` of the layout in a file written under that schema.

        Raises as ``SchemaHistory.load``, and ``KeyError`` for a column that the layout does not have.
        """
        return self._resolved(schema_id, names)

    def _resolve(self, schema_id: int, names: tuple[str, ...]) -> StoredColumns:
        columns = tuple(self._column(schema_id, name) for name in names)
        return StoredColumns(
            columns=columns,
            schema=pa.schema([each.wanted for each in columns]),
            are_whole=self._of_rows.issubset(names),
        )

    def _column(self, schema_id: int, name: str) -> StoredColumn:
        wanted = self._layout.field(name)
        system = _SYSTEM_TYPES.get(name)
        if system is not None:
            return StoredColumn(wanted=wanted, wanted_type=system, name=name, stored_type=system, stands_as_it_is=True)
        wanted_type = self._schemas.current.field(name).type
        was = self._schemas.field_in(schema_id, name)
        stored_type = wanted_type if was is None else was.type
        return StoredColumn(
            wanted=wanted,
            wanted_type=wanted_type,
            name=None if was is None else was.name,
            stored_type=stored_type,
            stands_as_it_is=stands_as_it_is(stored_type, wanted_type),
        )
