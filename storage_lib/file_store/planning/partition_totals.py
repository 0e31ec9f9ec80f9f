"""Number of rows and exact bounds of columns in each partition, from the metadata of files that need no merge.

Bounds in manifests are safe for pruning, but need not occur in a file: those of text are truncated, those of floats
ignore NaN and the sign of zero. Here a bound is a value of the table, or the answer is None: read the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.planning.file_pruning import decoded_stats
from storage_lib.file_store.planning.plan import DividedPlan
from storage_lib.schema.evolution.schema_versions import SchemaVersions
from storage_lib.schema.filter.column_stats import ColumnStats
from storage_lib.schema.types.data_types import DataType, TypeRoot

__all__ = ["Bounds", "PartitionTotals", "has_exact_bounds", "total_of", "totals_by_partition"]

_EXACT = frozenset(
    {
        TypeRoot.TINYINT,
        TypeRoot.SMALLINT,
        TypeRoot.INTEGER,
        TypeRoot.BIGINT,
        TypeRoot.DECIMAL,
        TypeRoot.DATE,
    }
)
_TIMESTAMPS = frozenset({TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ})
_MICROS_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Bounds:
    """Smallest and largest value of a column (Python values as in ``decode_row``); None if all values are null."""

    min: Any
    max: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTotals:
    """Rows of one serialized partition, at least one; ``bounds`` by column."""

    partition: bytes
    row_count: int
    bounds: Mapping[str, Bounds]


def has_exact_bounds(type_: DataType) -> bool:
    """Return whether the bounds of a column with this type are values of the column, in files of all writers."""
    return type_.root in _EXACT or (type_.root in _TIMESTAMPS and (type_.precision or 0) <= _MICROS_DIGITS)


def totals_by_partition(
    plan: DividedPlan, columns: Sequence[str], schemas: SchemaVersions
) -> tuple[PartitionTotals, ...] | None:
    """Return the totals of the partitions that have rows, with the bounds of ``columns``; None if not exact.

    They are not exact if files have to be merged, have deleted rows or deletions, or store only some columns; if a
    column was converted to another type since; or if its writer left the bounds out.
    """
    if plan.merged.entries or not all(_stores_its_rows(entry.file) for entry in plan.unmerged.entries):
        return None
    if not all(has_exact_bounds(schemas.current.field(name).type) for name in columns):
        return None
    totals: list[PartitionTotals] = []
    for partition, entries in groupby(plan.unmerged.entries, lambda entry: entry.partition):
        count = 0
        found: list[Mapping[str, Bounds]] = []
        for file in (entry.file for entry in entries if entry.file.row_count):
            bounds = _bounds_in(file, columns, schemas)
            if bounds is None:
                return None
            found.append(bounds)
            count += file.row_count
        if found:
            over = {name: _over(each[name] for each in found) for name in columns}
            totals.append(PartitionTotals(partition=partition, row_count=count, bounds=over))
    return tuple(totals)


def total_of(totals: Sequence[PartitionTotals], columns: Sequence[str]) -> tuple[int, dict[str, Bounds]]:
    """Return the number of rows and the bounds over several partitions; without rows, 0 and no bounds."""
    bounds = {name: _over(each.bounds[name] for each in totals) for name in columns}
    return sum(each.row_count for each in totals), bounds


def _stores_its_rows(file: DataFileMeta) -> bool:
    return file.write_cols is None and file.deletion_file is None and file.delete_row_count == 0


def _bounds_in(file: DataFileMeta, columns: Sequence[str], schemas: SchemaVersions) -> dict[str, Bounds] | None:
    """Return the bounds of columns in a file with rows; None if those of one are not exact."""
    stats = _stats_of(file, schemas) if columns else {}
    found: dict[str, Bounds] = {}
    for name in columns:
        stored = schemas.field_in(file.schema_id, name)
        if stored is None:
            found[name] = Bounds(None, None)  # the file is older than the column
            continue
        wanted = schemas.current.field(name).type
        if stored.type.with_nullable(nullable=True) != wanted.with_nullable(nullable=True):
            return None
        if wanted.root in _TIMESTAMPS and not file.file_name.endswith(".parquet"):
            return None  # ORC's own statistics are in milliseconds
        bounds = _exact(stats[stored.name]) if stored.name in stats else None
        if bounds is None:
            return None
        found[name] = bounds
    return found


def _stats_of(file: DataFileMeta, schemas: SchemaVersions) -> Mapping[str, ColumnStats]:
    schema = schemas.of(file.schema_id)
    names = [each.name for each in schema.fields] if file.value_stats_cols is None else file.value_stats_cols
    return decoded_stats(file.value_stats, [schema.field(each) for each in names], file.row_count)


def _exact(stats: ColumnStats) -> Bounds | None:
    if stats.null_count == stats.row_count:
        return Bounds(None, None)
    return None if stats.min is None or stats.max is None else Bounds(stats.min, stats.max)


def _over(bounds: Iterable[Bounds]) -> Bounds:
    valued = [each for each in bounds if each.min is not None]
    if not valued:
        return Bounds(None, None)
    return Bounds(min(each.min for each in valued), max(each.max for each in valued))
