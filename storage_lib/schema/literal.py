"""Values that users write in filters and partition specs, as values of a column's type."""

from __future__ import annotations

import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.schema.data_types import TypeRoot
from storage_lib.schema.table_schema import DataField

_TEXT = (TypeRoot.CHAR, TypeRoot.VARCHAR)


def typed_literal(value: object, field: DataField, *, text_only: bool = False) -> object:
    """``value`` as the Python value of ``field``'s type; text is read as that type (``'2013-01-05'`` for a date).

    Raises ``InvalidInputError`` naming the column, the value and what to write.
    """
    if text_only and field.type.root not in _TEXT:
        message = f"column {field.name!r} is {field.type}; a prefix can only be looked for in text"
        raise InvalidInputError(message)
    if value is None:
        message = f"column {field.name!r} is compared with null, which is never true; use is_null() or is_not_null()"
        raise InvalidInputError(message)
    try:
        return _converted(value, field)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, ValueError) as error:
        message = (
            f"{value!r} is no value of column {field.name!r}, which is {field.type}: {error}. Write it as that type"
        )
        raise InvalidInputError(message) from error


def _converted(value: object, field: DataField) -> object:
    wanted = field.type.arrow
    if isinstance(value, bool) is not (field.type.root is TypeRoot.BOOLEAN) and not isinstance(value, str):
        message = "booleans and other types don't mix"
        raise ValueError(message)
    if isinstance(value, str) and field.type.root not in _TEXT:
        converted: object = pa.scalar(value).cast(wanted).as_py()
        return converted
    if not isinstance(value, str) and field.type.root in _TEXT:
        message = "text is wanted"
        raise ValueError(message)
    if isinstance(value, float) and pa.types.is_integer(wanted):
        # 3.5 is a fine thing to compare an integer column with.
        return int(value) if value.is_integer() else value
    try:
        exact: object = pa.scalar(value, wanted).as_py()
    except (pa.ArrowInvalid, OverflowError):
        # Beyond the column's range or scale, yet comparable.
        return (
            pa.scalar(value).as_py() if pa.types.is_integer(wanted) or pa.types.is_decimal(wanted) else _refuse(value)
        )
    return exact


def _refuse(value: object) -> object:
    message = f"{value!r} does not fit"
    raise ValueError(message)
