"""Convert values that users write in filters and partition specs to a column's type."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import NoReturn

import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.schema.table_schema import DataField
from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.exact_decimals import as_decimals
from storage_lib.schema.types.nested_types import is_nested

_TEXT = (TypeRoot.CHAR, TypeRoot.VARCHAR)


def typed_literal(value: object, field: DataField, *, text_only: bool = False) -> object:
    """Convert ``value`` to the Python value of ``field``'s type; text is parsed (``'2013-01-05'`` for a date).

    A number that the column can't hold (3.5 for an INT) is returned unchanged: it can still be compared with.
    Raises ``InvalidInputError`` naming the column, the value and what to write.
    """
    if text_only and field.type.root not in _TEXT:
        message = f"column {field.name!r} is {field.type}; a prefix can only be looked for in text"
        raise InvalidInputError(message)
    if is_nested(field.type):
        message = (
            f"column {field.name!r} is {field.type}; of a nested column only is_null() and is_not_null() can be asked"
        )
        raise InvalidInputError(message)
    if value is None:
        message = f"column {field.name!r} is compared with null, which is never true; use is_null() or is_not_null()"
        raise InvalidInputError(message)
    try:
        return _converted(value, field.type)
    except (pa.ArrowException, ArithmeticError, ValueError, TypeError) as error:
        message = f"{value!r} is not a value of column {field.name!r}, which is {field.type}: {error}"
        raise InvalidInputError(message) from error


def exact_scalar(value: object, arrow_type: pa.DataType) -> pa.Scalar | None:
    """Return the value in that type; None if the type can't represent it exactly."""
    try:
        scalar = pa.scalar(value, arrow_type)
        held = scalar.as_py() == value or value != value  # noqa: PLR0124  NaN
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        return None
    return scalar if held else None


def _converted(value: object, data_type: DataType) -> object:
    # NumPy scalars convert themselves to Python values.
    value = getattr(value, "item", lambda: value)() if type(value).__module__ == "numpy" else value
    if isinstance(value, str) and data_type.root not in _TEXT:
        of_decimal = data_type.root is TypeRoot.DECIMAL
        value = (
            as_decimals(pa.array([value]), data_type.arrow)[0] if of_decimal else pa.scalar(value).cast(data_type.arrow)
        ).as_py()
    return _OF_ROOT[data_type.root](value, data_type)


def _boolean(value: object, _: DataType) -> bool:
    if not isinstance(value, bool):
        _refuse("write True or False")
    return value


def _integer(value: object, _: DataType) -> int | float | Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        _refuse("write a number")
    # An integer column may be compared with 3.5.
    return int(value) if math.isfinite(value) and value == int(value) else value


def _float(value: object, _: DataType) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        _refuse("write a number")
    return float(value)


def _decimal(value: object, data_type: DataType) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        _refuse("write a Decimal")
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    try:
        scaled = exact.quantize(Decimal(1).scaleb(-(data_type.scale or 0)))
    except InvalidOperation:
        return exact
    return scaled if scaled == exact else exact


def _text(value: object, _: DataType) -> str:
    if not isinstance(value, str):
        _refuse("write text")
    return value


def _bytes(value: object, _: DataType) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        _refuse("write bytes")
    return bytes(value)


def _date(value: object, _: DataType) -> date:
    if isinstance(value, datetime):
        if value.tzinfo is not None or value.time() != time():
            _refuse("write a date, without a time of day")
        return value.date()
    if not isinstance(value, date):
        _refuse("write a date, or text such as '2024-05-14'")
    return value


def _time(value: object, _: DataType) -> time:
    if not isinstance(value, time) or value.tzinfo is not None:
        _refuse("write a time of day, without time zone")
    return value


def _timestamp(value: object, _: DataType) -> datetime:
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001  a TIMESTAMP has no zone
    if not isinstance(value, datetime) or value.tzinfo is not None:
        _refuse("write a datetime without time zone, or text such as '2024-05-14 01:02:03'")
    return value


def _zoned_timestamp(value: object, _: DataType) -> datetime:
    if not isinstance(value, datetime) or value.tzinfo is None:
        _refuse("write a datetime with its time zone, or text such as '2024-05-14 01:02:03Z'")
    return value.astimezone(UTC)


def _refuse(remedy: str) -> NoReturn:
    raise ValueError(remedy)


_OF_ROOT: dict[TypeRoot, Callable[[object, DataType], object]] = {
    TypeRoot.BOOLEAN: _boolean,
    TypeRoot.TINYINT: _integer,
    TypeRoot.SMALLINT: _integer,
    TypeRoot.INTEGER: _integer,
    TypeRoot.BIGINT: _integer,
    TypeRoot.FLOAT: _float,
    TypeRoot.DOUBLE: _float,
    TypeRoot.DECIMAL: _decimal,
    TypeRoot.CHAR: _text,
    TypeRoot.VARCHAR: _text,
    TypeRoot.BINARY: _bytes,
    TypeRoot.VARBINARY: _bytes,
    TypeRoot.DATE: _date,
    TypeRoot.TIME: _time,
    TypeRoot.TIMESTAMP: _timestamp,
    TypeRoot.TIMESTAMP_LTZ: _zoned_timestamp,
}
