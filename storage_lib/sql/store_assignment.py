"""Which values may be stored in a column of which type: Spark's ANSI rules of store assignment.

https://spark.apache.org/docs/latest/sql-ref-ansi-compliance.html#store-assignment
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    BinaryType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
    VarcharType,
)

from storage_lib.errors import InvalidInputError
from storage_lib.spark.predicate_column import quoted
from storage_lib.spark.spark_schema import struct_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage_lib.table.dynamic_table import DynamicTable

_TEXTS = (StringType, CharType, VarcharType)
_MOMENTS = (DateType, TimestampType, TimestampNTZType)


def can_store(value: DataType, column: DataType) -> bool:
    """Whether a cast is made unasked; it fails where a value does not fit."""
    if value == column or isinstance(value, NullType):
        return True
    match value, column:
        case ArrayType(), ArrayType():
            return can_store(value.elementType, column.elementType)
        case MapType(), MapType():
            return can_store(value.keyType, column.keyType) and can_store(value.valueType, column.valueType)
        case StructType(), StructType():
            pairs = zip(value.fields, column.fields, strict=False)
            same_size = len(value.fields) == len(column.fields)
            return same_size and all(can_store(left.dataType, right.dataType) for left, right in pairs)
        case _:
            return _can_store_scalar(value, column)


def _can_store_scalar(value: DataType, column: DataType) -> bool:
    if isinstance(value, NumericType) and isinstance(column, NumericType):
        return True
    if isinstance(column, _TEXTS):
        return isinstance(value, AtomicType) and not isinstance(value, BinaryType)
    if isinstance(column, _MOMENTS):
        return isinstance(value, _MOMENTS)
    return type(value) is type(column) and isinstance(value, (BooleanType, BinaryType, TimeType))


def as_stored(df: DataFrame, table: DynamicTable, names: Sequence[str]) -> DataFrame:
    """The columns of ``df``, by place, under these names and in the types in which the table stores them.

    One of the names may be that of the column that carries the kinds of rows.

    Raises ``InvalidInputError`` naming the column and the cast that is missing.
    """
    kind = table.options.row_kind_field
    stored = {field.name: field for field in struct_of(table.schema, [name for name in names if name != kind]).fields}
    wanted = [stored.get(name, StructField(kind, StringType())) for name in names]
    given = df.schema.fields
    if len(given) != len(names):
        message = (
            f"table {table.name}: the query gives {len(given)} columns ({', '.join(each.name for each in given)}), "
            f"but {len(names)} are to be written ({', '.join(names)}); write a value for each, or name the columns: "
            f"INSERT INTO {table.name} (a, b) ..."
        )
        raise InvalidInputError(message)
    columns = []
    for value, column in zip(given, wanted, strict=True):
        if not can_store(value.dataType, column.dataType):
            declared = table.schema.field(column.name).type.with_nullable(nullable=True)
            message = (
                f"table {table.name}: column {column.name!r} is {declared}, and the query gives "
                f"{value.dataType.simpleString().upper()} ({value.name}); write CAST(... AS {declared})"
            )
            raise InvalidInputError(message)
        columns.append(quoted(column.name).cast(column.dataType).alias(column.name))
    return df.toDF(*names).select(*columns)
