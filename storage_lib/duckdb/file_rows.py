"""Data files as a SELECT of DuckDB, for columns that DuckDB reads with the values that this library reads."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from storage_lib.file_store.data_file.key_value import KEY_PREFIX, SEQUENCE_NUMBER, VALUE_COUNT, VALUE_KIND
from storage_lib.materialized.algebra.in_duckdb.duckdb_text import identifier, literal
from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.row_kind import RowKind

if TYPE_CHECKING:
    from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
    from storage_lib.file_store.data_file.stored_columns import StoredColumn
    from storage_lib.materialized.algebra import ValueType
    from storage_lib.table.builders.read_builder import ReadBuilder
    from storage_lib.table.read.unmerged_file import UnmergedFile

_WHOLE = (TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INTEGER, TypeRoot.BIGINT)
_READ_ALIKE = frozenset(
    {
        *_WHOLE,
        TypeRoot.BOOLEAN,
        TypeRoot.DECIMAL,
        TypeRoot.DOUBLE,
        TypeRoot.VARCHAR,
        TypeRoot.DATE,
        TypeRoot.TIMESTAMP,
        TypeRoot.TIMESTAMP_LTZ,
    }
)
_TIMES = (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)
_MICROS_DIGITS = 6
_PATTERN = frozenset("*?[")
"""Characters of a path by which DuckDB looks for several files."""

_OF_SYSTEM = (KEY_PREFIX.lower(), *(name.lower() for name in (SEQUENCE_NUMBER, VALUE_COUNT, VALUE_KIND)))
_KEPT = f"{identifier(VALUE_KIND)} IN ({int(RowKind.INSERT)}, {int(RowKind.UPDATE_AFTER)})"


def file_groups(files: Iterable[UnmergedFile]) -> list[list[UnmergedFile]]:
    """Return the files in groups that one SELECT reads."""
    in_order = sorted(files, key=_kind_of)
    return [list(group) for _, group in groupby(in_order, _kind_of)]


def select_of_files(
    read: ReadBuilder, files: Sequence[UnmergedFile], types: Mapping[str, ValueType | None]
) -> str | None:
    """Return a SELECT of columns, with these types (None: the file's), from files of one group of ``file_groups``.

    None if DuckDB might read other values, or rows.
    """
    first = files[0].entry.file
    if any(not _is_plain(file) for file in files):
        return None
    if not _are_told_apart(read.names_in_files(first.schema_id)):
        return None
    stored = {each.wanted.name: each for each in read.stored_columns(first.schema_id).columns}
    items = []
    for name, kind in types.items():
        text_of = _item(stored[name], kind)
        if text_of is None:
            return None
        items.append(f"{text_of} AS {identifier(name)}")
    paths = ", ".join(literal(file.path) for file in files)
    where = f" WHERE {_KEPT}" if first.delete_row_count else ""
    return f"SELECT {', '.join(items)} FROM read_parquet([{paths}], hive_partitioning = false){where}"


def _kind_of(file: UnmergedFile) -> tuple[int, str, bool]:
    meta = file.entry.file
    return meta.schema_id, _extension(meta), meta.delete_row_count != 0


def _extension(meta: DataFileMeta) -> str:
    return meta.file_name.rpartition(".")[2]


def _is_plain(file: UnmergedFile) -> bool:
    """Return whether a file is a Parquet file of this machine with all columns and rows of the table."""
    meta = file.entry.file
    is_whole = meta.write_cols is None and meta.deletion_file is None
    is_here = file.path.startswith("/") and not _PATTERN & set(file.path)
    return is_whole and is_here and _extension(meta) == "parquet"


def _are_told_apart(names: Collection[str]) -> bool:
    """Return whether all columns of a file have different names for DuckDB, which ignores case."""
    lower = {name.lower() for name in names}
    return len(lower) == len(names) and not any(name.startswith(_OF_SYSTEM) for name in lower)


def _item(column: StoredColumn, kind: ValueType | None) -> str | None:
    stored, wanted = column.stored_type, column.wanted_type
    if column.name is None:
        return None if kind is None else f"CAST(NULL AS {kind.duckdb})"
    if not _is_read_alike(stored, wanted):
        return None
    text = identifier(column.name)
    if stored.root is TypeRoot.DOUBLE:
        # Statistics of files leave NaN out, so DuckDB must not compare them: it takes NaN for the greatest number.
        text = f"(CASE WHEN isnan({text}) THEN CAST('nan' AS DOUBLE) ELSE {text} END)"
    return text if kind is None else f"CAST({text} AS {kind.duckdb})"


def _is_read_alike(stored: DataType, wanted: DataType) -> bool:
    if stored.root not in _READ_ALIKE or (stored.root in _TIMES and (stored.precision or 0) > _MICROS_DIGITS):
        return False
    return stored.root is wanted.root or (stored.root in _WHOLE and wanted.root in _WHOLE)
