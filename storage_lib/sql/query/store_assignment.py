"""Spark's ANSI store assignment: which types of values may be stored in a column of which type.

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
    ByteType,
    CharType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    NumericType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
)

from storage_lib.errors import InvalidInputError
from storage_lib.spark.types.predicate_column import quoted
from storage_lib.spark.types.spark_schema import ROW_POSITION, struct_of
from storage_lib.spark.versions.time_type import TimeType

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from storage_lib.table.dynamic_table import DynamicTable

_TEXTS = (StringType, CharType, VarcharType)
_MOMENTS = (DateType, TimestampType, TimestampNTZType)
_WIDER_AND_WIDER = (ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType)


def can_store(value: DataType, column: DataType) -> bool:
    """Return whether a value type may be cast implicitly to a column type; the cast fails for a value out of range."""
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
    """Return the columns of ``df``, by position, under these names and cast to the table's types.

    ``names`` may include the columns with the row kind and the row position.

    Raises ``InvalidInputError`` for a wrong number of columns, or naming the column and the missing cast.
    """
    hidden = {
        table.options.row_kind_field: StructField(table.options.row_kind_field, StringType()),
        ROW_POSITION: StructField(ROW_POSITION, LongType()),
    }
    known = [name for name in names if name in table.schema.arrow_schema.names]
    stored = {field.name: field for field in struct_of(table.schema, known).fields}
    wanted = [stored[name] if name in stored else hidden[name] for name in names]
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
                f"{_spelled(value.dataType)} ({value.name}); write CAST(... AS {declared})"
            )
            raise InvalidInputError(message)
        columns.append(_stored(value.dataType, column, table).alias(column.name))
    return df.toDF(*names).select(*columns)


def _stored(value: DataType, column: StructField, table: DynamicTable) -> Column:
    """Return the cast; it fails at run time for a number out of range, naming the column and the value."""
    from pyspark.sql import functions as sql

    given = quoted(column.name)
    cast = given.cast(column.dataType)
    if not (isinstance(value, NumericType) and isinstance(column.dataType, NumericType)):
        return cast
    if value == column.dataType or _is_wider(column.dataType, value):
        return cast
    declared = table.schema.field(column.name).type.with_nullable(nullable=True)
    problem = sql.concat(
        sql.lit(f"table {table.name}: column {column.name!r} is {declared}, which does not hold "),
        given.cast(StringType()),
        sql.lit("; correct the value, or ALTER TABLE ... MODIFY the column"),
    )
    fitting = given.try_cast(column.dataType)
    return sql.when(given.isNotNull() & fitting.isNull(), sql.raise_error(problem)).otherwise(fitting)


def _is_wider(column: DataType, value: DataType) -> bool:
    order = _WIDER_AND_WIDER
    if type(column) not in order or type(value) not in order:
        return False
    return order.index(type(column)) > order.index(type(value))


def _spelled(value: DataType) -> str:
    """Return the name of Spark's type in upper case, with field names unchanged."""
    match value:
        case ArrayType():
            return f"ARRAY<{_spelled(value.elementType)}>"
        case MapType():
            return f"MAP<{_spelled(value.keyType)}, {_spelled(value.valueType)}>"
        case StructType():
            return f"STRUCT<{', '.join(f'{each.name}: {_spelled(each.dataType)}' for each in value.fields)}>"
        case _:
            return value.simpleString().upper()
