"""Types of values in records without a schema: the column's type, as the connector writes it in its modes.

The table's type has to be that of the database's column: a DECIMAL of the same scale (``precise`` writes the unscaled
value only), a TIME or TIMESTAMP of the same precision (``adaptive`` writes milliseconds for 0 to 3 digits, microseconds
for 4 to 6 and nanoseconds for more). A record with a schema tells by itself.
"""

from __future__ import annotations

from dataclasses import replace

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.conversion.capture_modes import CaptureModes
from storage_lib.log_store.conversion.captured_value_type import (
    BOOLEAN,
    BYTES,
    DOUBLE,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    TEXT,
    Meaning,
    Spelling,
    ValueType,
    row_of,
)
from storage_lib.schema.options.source_options import BinaryMode, DecimalMode, TimeMode
from storage_lib.schema.types.data_field import DataField
from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.nested_types import ArrayType, MapType, MultisetType, RowType

_PLAIN = {
    TypeRoot.BOOLEAN: BOOLEAN,
    TypeRoot.TINYINT: INT8,
    TypeRoot.SMALLINT: INT16,
    TypeRoot.INTEGER: INT32,
    TypeRoot.BIGINT: INT64,
    TypeRoot.FLOAT: FLOAT,
    TypeRoot.DOUBLE: DOUBLE,
    TypeRoot.CHAR: TEXT,
    TypeRoot.VARCHAR: TEXT,
}
_BINARY_SPELLINGS = {
    BinaryMode.BYTES: Spelling.BASE64,
    BinaryMode.BASE64: Spelling.BASE64,
    BinaryMode.BASE64_URL_SAFE: Spelling.BASE64_URL,
    BinaryMode.HEX: Spelling.HEX,
}
_MILLIS_DIGITS, _MICROS_DIGITS = 3, 6
_FIXED_UNITS = {TimeMode.CONNECT: "ms", TimeMode.MICROSECONDS: "us", TimeMode.NANOSECONDS: "ns"}
_ISO = {TypeRoot.DATE: Meaning.DATE, TypeRoot.TIME: Meaning.TIME, TypeRoot.TIMESTAMP: Meaning.TIMESTAMP}


def of_modes(field: DataField, modes: CaptureModes) -> ValueType:
    """Return the type in which Debezium, in these modes, writes a column of the field's type.

    Raises ``InvalidInputError`` for a VARIANT, which no connector writes.
    """
    return _of_type(field.type, field.name, modes)


def of_flink(field: DataField) -> ValueType:
    """Return the type in which Flink's JSON format writes a column: text for times, numbers for decimals.

    Raises ``InvalidInputError`` for a VARIANT.
    """
    return _flink_of_type(field.type, field.name)


def binary_type(mode: BinaryMode | None) -> ValueType:
    """Return the type of a binary column in a mode."""
    return replace(BYTES, spelling=_BINARY_SPELLINGS[mode or BinaryMode.BYTES])


def _of_type(of: DataType, name: str, modes: CaptureModes) -> ValueType:
    match of:
        case ArrayType():
            return ValueType(meaning=Meaning.ARRAY, element=_of_type(of.element, f"{name}.element", modes))
        case MapType() | MultisetType():
            key, value = _entry_types(of)
            return ValueType(
                meaning=Meaning.MAP,
                key=_of_type(key, f"{name}.key", modes),
                element=_of_type(value, f"{name}.value", modes),
            )
        case RowType():
            return row_of({each.name: _of_type(each.type, f"{name}.{each.name}", modes) for each in of.fields})
        case _:
            return _of_scalar(of, name, modes)


def _of_scalar(of: DataType, name: str, modes: CaptureModes) -> ValueType:  # noqa: PLR0911  one per kind of type
    match of.root:
        case TypeRoot.DECIMAL:
            return _decimal(of, modes.decimal)
        case TypeRoot.BINARY | TypeRoot.VARBINARY:
            return binary_type(modes.binary)
        case TypeRoot.TIMESTAMP_LTZ:
            return ValueType(meaning=Meaning.INSTANT, spelling=Spelling.TEXT)
        case TypeRoot.DATE | TypeRoot.TIME | TypeRoot.TIMESTAMP if modes.time is TimeMode.ISOSTRING:
            return ValueType(meaning=_ISO[of.root], spelling=Spelling.TEXT)
        case TypeRoot.DATE:
            return ValueType(meaning=Meaning.DATE)
        case TypeRoot.TIME | TypeRoot.TIMESTAMP:
            return ValueType(meaning=_ISO[of.root], unit=_unit(of, modes.time))
        case TypeRoot.VARIANT:
            raise _variant(name)
        case _:
            return _PLAIN[of.root]


def _decimal(of: DataType, mode: DecimalMode | None) -> ValueType:
    if mode is DecimalMode.STRING:
        return ValueType(meaning=Meaning.DECIMAL, spelling=Spelling.TEXT)
    if mode is DecimalMode.DOUBLE:
        return ValueType(meaning=Meaning.DECIMAL, spelling=Spelling.NUMBER)
    return ValueType(
        meaning=Meaning.DECIMAL,
        spelling=Spelling.UNSCALED,
        precision=of.precision,
        scale=of.scale,
        is_guessed=mode is None,
    )


def _unit(of: DataType, mode: TimeMode) -> str:
    if mode in _FIXED_UNITS:
        return _FIXED_UNITS[mode]
    if of.root is TypeRoot.TIME and mode is TimeMode.ADAPTIVE_TIME_MICROSECONDS:
        return "us"
    digits = of.precision or 0
    return "ms" if digits <= _MILLIS_DIGITS else "us" if digits <= _MICROS_DIGITS else "ns"


def _flink_of_type(of: DataType, name: str) -> ValueType:  # noqa: PLR0911  one per kind of type
    match of:
        case ArrayType():
            return ValueType(meaning=Meaning.ARRAY, element=_flink_of_type(of.element, f"{name}.element"))
        case MapType() | MultisetType():
            key, value = _entry_types(of)
            return ValueType(
                meaning=Meaning.MAP,
                key=_flink_of_type(key, f"{name}.key"),
                element=_flink_of_type(value, f"{name}.value"),
            )
        case RowType():
            return row_of({each.name: _flink_of_type(each.type, f"{name}.{each.name}") for each in of.fields})
    match of.root:
        case TypeRoot.DECIMAL:
            return ValueType(meaning=Meaning.DECIMAL, spelling=Spelling.DIGITS, precision=of.precision, scale=of.scale)
        case TypeRoot.BINARY | TypeRoot.VARBINARY:
            return BYTES
        case TypeRoot.TIMESTAMP_LTZ:
            return ValueType(meaning=Meaning.INSTANT, spelling=Spelling.TEXT)
        case TypeRoot.DATE | TypeRoot.TIME | TypeRoot.TIMESTAMP:
            return ValueType(meaning=_ISO[of.root], spelling=Spelling.TEXT)
        case TypeRoot.VARIANT:
            raise _variant(name)
        case _:
            return _PLAIN[of.root]


def _entry_types(of: MapType | MultisetType) -> tuple[DataType, DataType]:
    if isinstance(of, MapType):
        return of.key, of.value
    return of.element, DataType(TypeRoot.INTEGER, nullable=False)


def _variant(name: str) -> InvalidInputError:
    message = (
        f"column {name!r} is a VARIANT, which records of a topic can't represent; read it into a STRING column, and "
        "make variants of that"
    )
    return InvalidInputError(message)
