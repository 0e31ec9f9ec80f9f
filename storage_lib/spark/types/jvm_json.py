"""Keys and values of debezium-json records as expressions that Spark's JVM evaluates (docs/format.md, log record).

    row kind     record                                     key: the JSON of the primary key
    none, +I     {"before":null,"after":row,"op":"c"}
    +U           {"before":null,"after":row,"op":"u"}
    -D           {"before":row,"after":null,"op":"d"}

They decode to the same rows as the records of ``DebeziumJson``. Only the text of FLOAT and DOUBLE, and the escapes of
control characters, may differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from storage_lib.errors import InvalidInputError
from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.nested_types import ArrayType, MapType, MultisetType, RowType, is_nested
from storage_lib.schema.types.row_kind import RowKind
from storage_lib.spark.types.jvm_decimal import unscaled_bytes
from storage_lib.spark.types.jvm_moments import days, epoch, iso_text, time_of_day
from storage_lib.spark.types.predicate_column import quoted
from storage_lib.spark.types.refused_rows import refused_if

if TYPE_CHECKING:
    from pyspark.sql import Column

    from storage_lib.schema.table_schema import DataField, TableSchema

_TEXT = (TypeRoot.CHAR, TypeRoot.VARCHAR)
_BYTES = (TypeRoot.BINARY, TypeRoot.VARBINARY)
_WITH_NULLS = {"ignoreNullFields": "false"}
_OPERATIONS = {RowKind.INSERT: "c", RowKind.UPDATE_AFTER: "u", RowKind.DELETE: "d"}


@dataclass(frozen=True, slots=True)
class JvmJson:
    """Encoder of rows of ``table``, in which each column has Spark's type for the column of ``schema``."""

    table: str
    schema: TableSchema

    def __post_init__(self) -> None:
        """Raise ``InvalidInputError`` for a column that Spark's functions cannot encode."""
        for field in self.schema.fields:
            self._encoded(sql.lit(None), field.type, field.name)

    def key(self) -> Column:
        """Return the record's key (string)."""
        return sql.to_json(self._row([self.schema.field(name) for name in self.schema.primary_keys]), _WITH_NULLS)

    def value(self, row_kind_column: str | None) -> Column:
        """Return the record's value (string). Without a column of row kinds, every row is inserted."""
        # The order of the columns is that of ``DebeziumJson``.
        row = self._row(sorted(self.schema.fields, key=lambda field: is_nested(field.type)))
        if row_kind_column is None:
            return self._envelope(sql.lit(None), row, sql.lit(_OPERATIONS[RowKind.INSERT]))
        kind = quoted(row_kind_column)
        is_delete = kind == RowKind.DELETE.symbol
        before, after = sql.when(is_delete, row), sql.when(~is_delete, row)
        return self._envelope(before, after, self._operation(kind, row_kind_column))

    def _envelope(self, before: Column, after: Column, operation: Column) -> Column:
        change = sql.struct(before.alias("before"), after.alias("after"), operation.alias("op"))
        return sql.to_json(change, _WITH_NULLS)

    def _operation(self, kind: Column, name: str) -> Column:
        found = sql.lit(None).cast("string")
        for each, operation in _OPERATIONS.items():
            found = sql.when(kind == each.symbol, sql.lit(operation)).otherwise(found)
        message = (
            f"column {name!r} is not +I, +U or -D in a row. With real_time=True, leave out the rows of kind -U, and "
            "write -D for a row whose key has changed"
        )
        return self._refused_if(found.isNull(), found, message)

    def _row(self, fields: list[DataField]) -> Column:
        encoded = [self._encoded(quoted(field.name), field.type, field.name).alias(field.name) for field in fields]
        return sql.struct(*encoded)

    def _encoded(self, column: Column, of: DataType, place: str) -> Column:
        value = self._of_type(column, of, place)
        if of.nullable:
            return value
        message = f"column {place!r} is NOT NULL, and a row has no value in it. Fill such rows, or filter them out"
        return self._refused_if(column.isNull(), value, message)

    def _of_type(self, column: Column, of: DataType, place: str) -> Column:
        match of:
            case ArrayType():
                return sql.transform(column, lambda each: self._encoded(each, of.element, f"{place}.element"))
            case MapType():
                self._refuse_keys(of.key, of, place)
                return self._map(column, of.key, of.value, place)
            case MultisetType():
                self._refuse_keys(of.element, of, place)
                return self._map(column, of.element, DataType(TypeRoot.INTEGER, nullable=False), place)
            case RowType():
                parts = [
                    self._encoded(column.getField(each.name), each.type, f"{place}.{each.name}").alias(each.name)
                    for each in of.fields
                ]
                return sql.when(column.isNotNull(), sql.struct(*parts))
            case _ if of.root is TypeRoot.VARIANT:
                raise self._unsupported(of, place)
            case _:
                return self._scalar(column, of, place)

    def _scalar(self, column: Column, of: DataType, place: str) -> Column:
        named = f"table {self.table}: column {place!r} is {of}: it"
        match of.root:
            case TypeRoot.DECIMAL:
                return unscaled_bytes(column, of.precision or 10)
            case TypeRoot.DATE:
                return days(column, named)
            case TypeRoot.TIME:
                return time_of_day(column, of, named)
            case TypeRoot.TIMESTAMP:
                return epoch(column, of, named)
            case TypeRoot.TIMESTAMP_LTZ:
                return iso_text(column, of, named)
            case _:
                return self._with_length(column, of, place)

    def _map(self, column: Column, key: DataType, value: DataType, place: str) -> Column:
        values = sql.transform_values(column, lambda _, each: self._encoded(each, value, f"{place}.value"))
        return sql.transform_keys(values, lambda each, _: self._encoded(each, key, f"{place}.key"))

    def _refuse_keys(self, key: DataType, of: DataType, place: str) -> None:
        if key.root not in _TEXT:
            raise self._unsupported(of, place)

    def _unsupported(self, of: DataType, place: str) -> InvalidInputError:
        message = (
            f"table {self.table}: column {place!r} is {of}, which Spark's JSON functions can't write as the table's "
            "log needs it; write the table without real_time=True"
        )
        return InvalidInputError(message)

    def _with_length(self, column: Column, of: DataType, place: str) -> Column:
        value = column
        if of.root in _TEXT:
            message = f"column {place!r} has bytes in a row that are not UTF-8. Decode them before writing"
            value = self._refused_if(~sql.is_valid_utf8(column), value, message)
        if of.length is None or of.root not in (*_TEXT, *_BYTES):
            return value
        length = sql.char_length(column) if of.root in _TEXT else sql.octet_length(column)
        message = f"column {place!r} is {of}, and a row has a longer value. Shorten it, or make the column longer"
        return self._refused_if(length > sql.lit(of.length), value, message)

    def _refused_if(self, condition: Column, value: Column, message: str) -> Column:
        return refused_if(condition, value, f"table {self.table}: {message}")
