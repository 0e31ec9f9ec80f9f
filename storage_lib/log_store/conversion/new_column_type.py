"""Types of columns that are created for written values (docs/cdc.md, types).

A new column holds every value without loss, but for nanoseconds, which no column holds. A DECIMAL whose scale or
precision the schema doesn't declare, or that is wider than 38 digits, becomes a STRING of its digits.
"""

from __future__ import annotations

from storage_lib.log_store.conversion.captured_value_type import Meaning, Spelling, ValueType
from storage_lib.schema.types.data_field import DataField
from storage_lib.schema.types.data_types import DECIMAL_PRECISION_MAX, DataType, TypeRoot
from storage_lib.schema.types.nested_types import ArrayType, MapType, RowType

_INTEGERS = {8: TypeRoot.TINYINT, 16: TypeRoot.SMALLINT, 32: TypeRoot.INTEGER, 64: TypeRoot.BIGINT}
_SECOND_DIGITS = {"ms": 3, "us": 6, "ns": 6}
"""A table can't be created with TIMESTAMP(9): other engines would cut it to microseconds."""
_STRING = DataType(TypeRoot.VARCHAR)
_PLAIN = {
    Meaning.BOOLEAN: DataType(TypeRoot.BOOLEAN),
    Meaning.TEXT: _STRING,
    Meaning.BYTES: DataType(TypeRoot.VARBINARY),
    Meaning.BITS: DataType(TypeRoot.VARBINARY),
    Meaning.DATE: DataType(TypeRoot.DATE),
    Meaning.TIME: DataType(TypeRoot.TIME, precision=3),
}
_ZONED_TIME = "io.debezium.time.ZonedTime"


def table_type(written: ValueType) -> DataType:  # noqa: PLR0911  one per kind of type
    """Return the type of a new column for written values, nullable at every depth; ROW fields get the id -1."""
    match written.meaning:
        case Meaning.ARRAY:
            return ArrayType(element=_of_part(written.element))
        case Meaning.MAP:
            return MapType(key=_of_part(written.key).not_null(), value=_of_part(written.element))
        case Meaning.ROW:
            fields = (DataField(id=-1, name=name, type=table_type(each)) for name, each in written.fields)
            return RowType(fields=tuple(fields))
        case Meaning.INTEGER:
            return DataType(_INTEGERS[written.bits or 64])
        case Meaning.FLOAT:
            return DataType(TypeRoot.FLOAT if written.bits == 32 else TypeRoot.DOUBLE)
        case Meaning.DECIMAL:
            return _decimal(written)
        case Meaning.TIME if written.name == _ZONED_TIME:
            return _STRING
        case Meaning.TIMESTAMP | Meaning.MOMENT:
            return DataType(TypeRoot.TIMESTAMP, precision=_SECOND_DIGITS[written.unit or "us"])
        case Meaning.INSTANT:
            return DataType(TypeRoot.TIMESTAMP_LTZ, precision=_SECOND_DIGITS[written.unit or "us"])
        case _:
            return _PLAIN[written.meaning]


def _decimal(written: ValueType) -> DataType:
    scale, precision = written.scale, written.precision or DECIMAL_PRECISION_MAX
    if written.spelling is Spelling.NUMBER:
        return DataType(TypeRoot.DOUBLE)
    if scale is None or not 0 <= scale <= precision <= DECIMAL_PRECISION_MAX:
        return _STRING
    return DataType(TypeRoot.DECIMAL, precision=precision, scale=scale)


def _of_part(written: ValueType | None) -> DataType:
    return _STRING if written is None else table_type(written)
