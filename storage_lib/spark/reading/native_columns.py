"""Columns of a data file as Spark's own readers return them, and the conversions to the table's columns.

A group of files is read natively only if Spark's reader and ours give the same values for every column; otherwise the
data source reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import StructField

from storage_lib.file_store.data_file.key_value import KEY_PREFIX, SEQUENCE_NUMBER, VALUE_COUNT, VALUE_KIND
from storage_lib.file_store.data_file.stored_columns import StoredColumn
from storage_lib.schema.evolution.type_widening import holds_every_value
from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.nested_types import ArrayType, MapType, MultisetType, RowType
from storage_lib.spark.types.spark_schema import spark_type_of

if TYPE_CHECKING:
    from pyspark.sql.types import DataType as SparkType

EXACT_TIMES = "spark.sql.datetime.java8API.enabled"
"""Setting of Spark by which it converts dates and times exactly; ``session`` sets it."""

_MILLIS_DIGITS = 3
_MICROS_DIGITS = 6
_FLOATS = (TypeRoot.FLOAT, TypeRoot.DOUBLE)
_EVERYWHERE = frozenset(
    {
        TypeRoot.BOOLEAN,
        TypeRoot.TINYINT,
        TypeRoot.SMALLINT,
        TypeRoot.INTEGER,
        TypeRoot.BIGINT,
        TypeRoot.FLOAT,
        TypeRoot.DOUBLE,
        TypeRoot.DECIMAL,
        TypeRoot.VARCHAR,
        TypeRoot.BINARY,
        TypeRoot.VARBINARY,
    }
)
_TIMESTAMPS = frozenset({TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ})
# ORC pads CHAR, and dates before 1582 and timestamps depend on flags of the file; TIME and VARIANT are converted by us.
_SCALARS = {"orc": _EVERYWHERE, "parquet": _EVERYWHERE | _TIMESTAMPS | {TypeRoot.CHAR, TypeRoot.DATE}}


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeColumn:
    """A column of the table. ``stored`` is the column to read; None: the files are older than the column.

    ``hides_from_pushdown``: Spark must not compare the column with statistics of a file.
    """

    name: str
    type: SparkType
    stored: StructField | None
    hides_from_pushdown: bool = False

    @property
    def is_read_as_it_is(self) -> bool:
        """Whether the stored column is the table's column."""
        return (
            self.stored is not None
            and (self.stored.name, self.stored.dataType) == (self.name, self.type)
            and not self.hides_from_pushdown
        )

    def description(self) -> dict[str, object]:
        """Return the column of the table as an expression of the stored columns, for ``FileRelations.select``."""
        stored = self.stored
        is_cast = stored is None or stored.dataType != self.type
        return {
            "name": self.name,
            "stored": None if stored is None else stored.name,
            "hidden": _hiding(stored) if stored is not None and self.hides_from_pushdown else "",
            "type": self.type.jsonValue() if is_cast else None,
        }


def native_columns(
    columns: Sequence[StoredColumn], extension: str, *, has_exact_times: bool
) -> tuple[NativeColumn, ...] | None:
    """Return how Spark reads these columns from files with this extension; None if its reader may differ from ours.

    ``has_exact_times``: Spark converts the dates and times of filters by ``java.time`` (``EXACT_TIMES``).
    """
    if extension not in _SCALARS:
        return None
    misleading = _FLOATS if has_exact_times else (*_FLOATS, TypeRoot.DATE, TypeRoot.TIMESTAMP_LTZ)
    found = [_native_column(each, extension, misleading) for each in columns]
    return tuple(each for each in found if each is not None) if all(found) else None


def are_told_apart(columns: Iterable[StoredColumn]) -> bool:
    """Return whether all columns of a file have different names for Spark, which ignores case."""
    names = [each.name.lower() for each in columns if each.name is not None]
    of_system = {each.lower() for each in (SEQUENCE_NUMBER, VALUE_KIND, VALUE_COUNT, *(KEY_PREFIX + n for n in names))}
    return len(set(names)) == len(names) and not of_system & set(names)


def null_column(column: StoredColumn) -> NativeColumn:
    """Return a column that is null in every row."""
    return NativeColumn(name=column.wanted.name, type=spark_type_of(column.wanted_type), stored=None)


def _native_column(column: StoredColumn, extension: str, misleading: Sequence[TypeRoot]) -> NativeColumn | None:
    stored, wanted = column.stored_type, column.wanted_type
    name = column.wanted.name
    if column.name is None:
        return null_column(column)
    # Nested types hold only themselves, so their parts are never converted.
    if not _is_read_alike(stored, extension) or not holds_every_value(wanted, stored):
        return None
    if _has_misleading_field(stored, misleading):
        return None
    return NativeColumn(
        name=name,
        type=spark_type_of(wanted),
        stored=StructField(column.name, spark_type_of(stored), stored.nullable),
        hides_from_pushdown=_misleads(stored, misleading),
    )


def _is_read_alike(of: DataType, extension: str) -> bool:
    match of:
        case ArrayType() | MultisetType():
            return extension == "parquet" and _is_read_alike(of.element, extension)
        case MapType():
            return extension == "parquet" and all(_is_read_alike(each, extension) for each in (of.key, of.value))
        case RowType():
            names = {each.name.lower() for each in of.fields}
            return (
                extension == "parquet"
                and len(names) == len(of.fields)
                and all(_is_read_alike(each.type, extension) for each in of.fields)
            )
        case _:
            return of.root in _SCALARS[extension] and (
                of.root not in _TIMESTAMPS or (of.precision or 0) <= _MICROS_DIGITS
            )


def _misleads(of: DataType, roots: Sequence[TypeRoot]) -> bool:
    """Whether Spark would skip rows by statistics that do not have its order.

    Bounds of floats ignore NaN, which Spark orders above all numbers. For milliseconds, Spark rounds the other side of
    a comparison down. Without ``EXACT_TIMES``, it converts days before 1583 by another calendar than it compares by.
    """
    is_millis = of.root is TypeRoot.TIMESTAMP_LTZ and (of.precision or 0) <= _MILLIS_DIGITS
    return of.root in roots or is_millis


def _hiding(stored: StructField) -> str:
    """Return by which expression a value stays the same, but Spark can't translate it to a filter of files."""
    match stored.dataType.typeName():
        case "float" | "double":
            return "float"
        case "date":
            return "date"
        case _:
            return "moment"


def _has_misleading_field(of: DataType, roots: Sequence[TypeRoot]) -> bool:
    """Whether a field of a ROW misleads: Spark pushes filters on fields of rows, but not into lists."""
    if not isinstance(of, RowType):
        return False
    return any(_misleads(each.type, roots) or _has_misleading_field(each.type, roots) for each in of.fields)
