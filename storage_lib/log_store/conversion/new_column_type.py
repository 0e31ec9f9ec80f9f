"""Types of columns that are created or altered for written values (docs/cdc.md, types).

A new column holds every value without loss. A DECIMAL whose scale or precision the schema doesn't declare, or that is
wider than 38 digits, becomes a STRING of its digits.
"""

from __future__ import annotations

from collections.abc import Callable

from storage_lib.log_store.conversion.captured_value_type import Meaning, Spelling, ValueType
from storage_lib.schema.evolution.type_widening import holds_every_value
from storage_lib.schema.types.data_field import DataField
from storage_lib.schema.types.data_types import DECIMAL_PRECISION_MAX, DataType, TypeRoot
from storage_lib.schema.types.nested_types import ArrayType, MapType, RowType

_INTEGERS = {8: TypeRoot.TINYINT, 16: TypeRoot.SMALLINT, 32: TypeRoot.INTEGER, 64: TypeRoot.BIGINT}
_DIGITS = {TypeRoot.TINYINT: 3, TypeRoot.SMALLINT: 5, TypeRoot.INTEGER: 10, TypeRoot.BIGINT: 19}
_SECOND_DIGITS = {"ms": 3, "us": 6, "ns": 9}
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


def widened(stored: DataType, written: ValueType) -> DataType | None:
    """Return the type that a column of type ``stored`` has to have for written values to fit.

    ``stored`` itself if it holds them all; a wider type that holds the stored values as well; None if there is none.
    """
    new = table_type(written).with_nullable(stored.nullable)
    if holds_every_value(stored, new) or (stored == _STRING.with_nullable(stored.nullable) and _is_text(written)):
        return stored
    if holds_every_value(new, stored):
        return new
    return next((wide for build in _UNIONS if (wide := build(stored, new)) is not None), None)


def _decimal_union(stored: DataType, new: DataType) -> DataType | None:
    """Return the DECIMAL with the digits of both, before and after the point."""
    if TypeRoot.DECIMAL not in (stored.root, new.root) or not {stored.root, new.root} <= {TypeRoot.DECIMAL, *_DIGITS}:
        return None
    scale = max(stored.scale or 0, new.scale or 0)
    precision = scale + max(_whole_digits(stored), _whole_digits(new))
    if precision > DECIMAL_PRECISION_MAX:
        return None
    return DataType(TypeRoot.DECIMAL, stored.nullable, precision=precision, scale=scale)


def _double_union(stored: DataType, new: DataType) -> DataType | None:
    """Return DOUBLE for a pair of types that neither holds the other, but DOUBLE holds both."""
    double = DataType(TypeRoot.DOUBLE, stored.nullable)
    is_number = {stored.root, new.root} <= {*_DIGITS, TypeRoot.FLOAT}
    return double if is_number and holds_every_value(double, stored) and holds_every_value(double, new) else None


_UNIONS: tuple[Callable[[DataType, DataType], DataType | None], ...] = (_decimal_union, _double_union)


def _whole_digits(of: DataType) -> int:
    return _DIGITS.get(of.root, (of.precision or 0) - (of.scale or 0))


def _is_text(written: ValueType) -> bool:
    """Whether a STRING column holds every value, as its text."""
    return written.spelling is Spelling.TEXT or written.meaning in (
        Meaning.TEXT,
        Meaning.INTEGER,
        Meaning.BOOLEAN,
        Meaning.DECIMAL,
    )


def _decimal(written: ValueType) -> DataType:
    scale, precision = written.scale, written.precision or DECIMAL_PRECISION_MAX
    if written.spelling is Spelling.NUMBER:
        return DataType(TypeRoot.DOUBLE)
    if scale is None or not 0 <= scale <= precision <= DECIMAL_PRECISION_MAX:
        return _STRING
    return DataType(TypeRoot.DECIMAL, precision=precision, scale=scale)


def _of_part(written: ValueType | None) -> DataType:
    return _STRING if written is None else table_type(written)
