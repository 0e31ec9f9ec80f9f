"""A table's schema as a Spark schema, and batches cast to exactly the Arrow types that Spark expects.

Spark's timestamps are microseconds: TIMESTAMP(0..9) become ``timestamp_ntz``, TIMESTAMP_LTZ(0..9) ``timestamp``.
A read fails at a nanosecond value that microseconds can't represent; values are never rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.types import (
    ArrayType as SparkArray,
)
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)
from pyspark.sql.types import (
    MapType as SparkMap,
)

from storage_lib.errors import InvalidInputError
from storage_lib.schema.types.data_types import DataType as TableType
from storage_lib.schema.types.data_types import TypeRoot
from storage_lib.schema.types.nested_types import ArrayType, MapType, MultisetType, RowType
from storage_lib.spark.versions.arrow_schemas import to_arrow_schema
from storage_lib.spark.versions.spark_feature import SparkFeature
from storage_lib.spark.versions.time_type import TimeType
from storage_lib.table.input.input_rows import InputRows

if TYPE_CHECKING:
    from storage_lib.schema.table_schema import TableSchema

ROW_POSITION = "_row_position"
"""Column (BIGINT) with the order of a stream's rows: ascending for the rows of a key in a micro-batch."""

_PLAIN: dict[TypeRoot, type[DataType]] = {
    TypeRoot.BOOLEAN: BooleanType,
    TypeRoot.TINYINT: ByteType,
    TypeRoot.SMALLINT: ShortType,
    TypeRoot.INTEGER: IntegerType,
    TypeRoot.BIGINT: LongType,
    TypeRoot.FLOAT: FloatType,
    TypeRoot.DOUBLE: DoubleType,
    TypeRoot.DATE: DateType,
    TypeRoot.CHAR: StringType,
    TypeRoot.VARCHAR: StringType,
    TypeRoot.BINARY: BinaryType,
    TypeRoot.VARBINARY: BinaryType,
    TypeRoot.TIMESTAMP: TimestampNTZType,
    TypeRoot.TIMESTAMP_LTZ: TimestampType,
    TypeRoot.VARIANT: VariantType,
}


def spark_type_of(of: TableType) -> DataType:
    """Return the Spark type for a table's type. Parts of nested types are nullable, as in Arrow."""
    match of:
        case ArrayType():
            return SparkArray(spark_type_of(of.element))
        case MapType():
            return SparkMap(spark_type_of(of.key), spark_type_of(of.value))
        case MultisetType():
            return SparkMap(spark_type_of(of.element), IntegerType())
        case RowType():
            return StructType([StructField(each.name, spark_type_of(each.type)) for each in of.fields])
        case _:
            return _scalar_type_of(of)


def _scalar_type_of(of: TableType) -> DataType:
    if of.root is TypeRoot.DECIMAL:
        return DecimalType(of.precision or 10, of.scale or 0)
    if of.root is TypeRoot.TIME:
        SparkFeature.TIME.require("this table", "Read it in Python, or leave the column out of the table")
        return TimeType(6)
    return _PLAIN[of.root]()


def struct_of(
    schema: TableSchema,
    columns: Sequence[str] | None = None,
    *,
    row_kind_column: str | None = None,
    has_position: bool = False,
) -> StructType:
    """Return the table's ``columns`` in this order (None: all), then the optional row kind and ``ROW_POSITION``.

    Raises ``InvalidInputError`` for an unknown or repeated column, and for a table with a column ``ROW_POSITION``.
    """
    known = {field.name: field for field in schema.fields}
    wanted = list(known) if columns is None else list(columns)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        message = f"no column {unknown[0]!r}; the table's columns are {', '.join(known)}"
        raise InvalidInputError(message)
    _refuse_repeated("the table", wanted)
    fields = [StructField(name, spark_type_of(known[name].type), known[name].type.nullable) for name in wanted]
    if row_kind_column is not None:
        fields.append(StructField(row_kind_column, StringType(), nullable=False))
    if has_position:
        if ROW_POSITION in known:
            message = (
                f"the table has a column {ROW_POSITION} of its own, so its streams can't tell the order of rows by it"
            )
            raise InvalidInputError(message)
        fields.append(StructField(ROW_POSITION, LongType(), nullable=False))
    return StructType(fields)


def arrow_schema_of(struct: StructType) -> pa.Schema:
    """Return the Arrow schema in which Spark exchanges rows of ``struct``.

    Raises ``InvalidInputError`` for a type that has no Arrow equivalent.
    """
    try:
        return to_arrow_schema(struct)
    except PySparkException as error:
        message = f"columns {struct.simpleString()}: {error}. Cast the column, or drop it"
        raise InvalidInputError(message) from error


def has_position(struct: StructType, schema: TableSchema) -> bool:
    """Return whether ``struct`` ends with ``ROW_POSITION`` and the table has no column of that name."""
    is_own = any(field.name == ROW_POSITION for field in schema.fields)
    return not is_own and bool(struct.fields) and struct.fields[-1].name == ROW_POSITION


def check_read_schema(
    table: str, schema: TableSchema, struct: StructType, row_kind_column: str | None, *, is_stream: bool = False
) -> None:
    """Refuse a schema given to ``spark.read.schema(...)`` that is not a subset of the table's columns.

    ``row_kind_column`` has to be the last column (None: no row kind). A stream may have ``ROW_POSITION`` after it.
    """
    wanted = [field.name for field in struct.fields]
    if is_stream and has_position(struct, schema):
        wanted = wanted[:-1]
        struct = StructType(struct.fields[:-1])
    if row_kind_column is not None:
        if not wanted or wanted[-1] != row_kind_column or struct.fields[-1].dataType != StringType():
            message = (
                f"table {table}: a stream of it carries changes, so the schema of the read has to end with "
                f"{row_kind_column} STRING, but has ({', '.join(wanted)}). Add it, or leave the schema out"
            )
            raise InvalidInputError(message)
        wanted = wanted[:-1]
    _refuse_repeated(f"table {table}", wanted)
    types = {field.name: field.type for field in schema.fields}
    for field in struct.fields[: len(wanted)]:
        if field.name not in types:
            message = f"table {table} has no column {field.name!r}; its columns are {', '.join(types)}"
            raise InvalidInputError(message)
        # Only of what is read: the installed Spark may lack the type of another column.
        expected = spark_type_of(types[field.name])
        if field.dataType != expected:
            message = (
                f"table {table}: column {field.name!r} reads as {expected.simpleString()}, but the schema of the read "
                f"says {field.dataType.simpleString()}. Leave the schema to the table, and cast afterwards"
            )
            raise InvalidInputError(message)


def _refuse_repeated(table: str, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            message = f"{table}: column {name!r} is requested twice; read it once, and select it twice afterwards"
            raise InvalidInputError(message)


def check_write_schema(table: str, schema: TableSchema, struct: StructType, row_kind_column: str) -> None:
    """Refuse a data frame that can't be written: an unknown, repeated or missing column, or a wrong type.

    ``ROW_POSITION`` is allowed: the write sorts by it and drops it.
    """
    if all(field.name != ROW_POSITION for field in schema.fields):
        struct = StructType([field for field in struct.fields if field.name != ROW_POSITION])
    InputRows(table, schema, row_kind_column).check_columns(arrow_schema_of(struct))


def conform(batch: pa.RecordBatch, wanted: pa.Schema, table: str) -> pa.RecordBatch:
    """Return the columns of ``batch`` in the order and exact types of ``wanted``.

    Raises ``InvalidInputError`` for a value that Spark's type can't represent (nanoseconds).
    """
    columns = []
    for field in wanted:
        column = batch.column(field.name)
        if column.type != field.type:
            try:
                column = column.cast(field.type, safe=True)
            except pa.ArrowInvalid as error:
                message = (
                    f"table {table}: column {field.name!r} has a value that Spark's {field.type} can't hold: {error}. "
                    "Leave the column out of the read (columns=...), or read it with storage_lib's own table.read()"
                )
                raise InvalidInputError(message) from error
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=wanted)
