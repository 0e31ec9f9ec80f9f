"""Types by which a JSON reader reads written values without loss, and arrays of what ``json.loads`` made of them.

Arrow's JSON reader supports neither objects with unknown keys nor quoted numbers: columns with maps, and with floats in
batches that hold a NaN or an infinity, are parsed with ``json.loads`` (``of_parsed``).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from storage_lib.log_store.conversion.captured_value_type import Meaning, Spelling, ValueType

_BY_MEANING = {
    Meaning.BOOLEAN: pa.bool_(),
    Meaning.INTEGER: pa.int64(),
    Meaning.FLOAT: pa.float64(),
    Meaning.TEXT: pa.string(),
    Meaning.BYTES: pa.string(),
    Meaning.BITS: pa.string(),
}
_SCALED = pa.struct([("scale", pa.int64()), ("value", pa.string())])
_NOT_FINITE = {word: float(word) for word in ("NaN", "Infinity", "-Infinity")}


def read_type(written: ValueType) -> pa.DataType:
    """Return the Arrow type that a JSON reader must expect for written values."""
    match written.meaning:
        case Meaning.ARRAY:
            return pa.list_(read_type(_part(written.element)))
        case Meaning.MAP:
            return pa.map_(read_type(_part(written.key)), read_type(_part(written.element)))
        case Meaning.ROW:
            return pa.struct([pa.field(name, read_type(each)) for name, each in written.fields])
        case Meaning.DECIMAL:
            return _decimal_type(written)
        case Meaning.DATE | Meaning.TIME | Meaning.TIMESTAMP | Meaning.INSTANT | Meaning.MOMENT:
            return pa.string() if written.spelling is Spelling.TEXT else pa.int64()
        case _:
            return _BY_MEANING[written.meaning]


def holds_map(written: ValueType) -> bool:
    """Whether a type is a map or contains one, whose keys Arrow's reader doesn't know."""
    return written.meaning is Meaning.MAP or any(holds_map(each) for each in _parts(written))


def holds_float(written: ValueType) -> bool:
    """Whether a type contains floats, which JSON writes as text if they are not finite."""
    return (
        written.meaning is Meaning.FLOAT
        or written.spelling is Spelling.NUMBER
        or any(holds_float(each) for each in _parts(written))
    )


def of_parsed(values: list[Any], written: ValueType) -> pa.Array:
    """Build a column of ``read_type`` from the output of ``json.loads``. Raises ``ValueError`` on a mismatch."""
    try:
        return pa.array([_arrow_ready(each, written) for each in values], read_type(written))
    except (pa.ArrowException, TypeError, OverflowError) as error:
        message = f"a value that is not {written}: {error}"
        raise ValueError(message) from error


def _decimal_type(written: ValueType) -> pa.DataType:
    match written.spelling:
        case Spelling.SCALED:
            return _SCALED
        case Spelling.NUMBER:
            return pa.float64()
        case Spelling.DIGITS:
            return pa.decimal128(written.precision, written.scale)
        case _:
            return pa.string()


def _arrow_ready(value: Any, written: ValueType) -> Any:  # noqa: PLR0911  one per kind of type
    if value is None:
        return None
    match written.meaning:
        case Meaning.ARRAY if isinstance(value, list):
            return [_arrow_ready(each, _part(written.element)) for each in value]
        case Meaning.MAP if isinstance(value, list | dict):
            key, element = _part(written.key), _part(written.element)
            return [(_arrow_ready(each, key), _arrow_ready(it, element)) for each, it in _pairs(value, written)]
        case Meaning.ROW if isinstance(value, dict):
            return {name: _arrow_ready(value.get(name), each) for name, each in written.fields}
        case Meaning.DECIMAL if written.spelling is Spelling.SCALED and isinstance(value, dict):
            return {"scale": value.get("scale"), "value": value.get("value")}
        case _ if isinstance(value, list | dict):
            raise _mismatch(value, written)
        case _ if holds_float(written):
            return _float(value, written)
        case _ if isinstance(value, bool) != (written.meaning is Meaning.BOOLEAN):
            raise _mismatch(value, written)
        case _:
            return value  # Arrow refuses text in place of a number, and a number in place of text


def _float(value: Any, written: ValueType) -> float:
    if isinstance(value, str):
        if value not in _NOT_FINITE:
            raise _mismatch(value, written)
        return _NOT_FINITE[value]
    if isinstance(value, bool):
        raise _mismatch(value, written)
    return float(value)


def _pairs(value: list[Any] | dict[str, Any], written: ValueType) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    if not all(isinstance(pair, list) and len(pair) == len(("key", "value")) for pair in value):
        raise _mismatch(value, written)
    return [(key, element) for key, element in value]


def _mismatch(value: Any, written: ValueType) -> ValueError:
    return ValueError(f"{str(value)[:80]!r} is not {written}")


def _parts(written: ValueType) -> list[ValueType]:
    parts = (written.key, written.element, *(each for _, each in written.fields))
    return [each for each in parts if each is not None]


def _part(written: ValueType | None) -> ValueType:
    if written is None:
        message = "an array or a map without the type of its elements"
        raise ValueError(message)
    return written
