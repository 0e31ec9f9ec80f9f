"""BinaryRow, the encoding of partitions, keys and statistics in metadata (docs/format.md, 1.9), row by row.

    [arity, 4 bytes big-endian] [null bits] [8 bytes per field] [variable part, items padded to 8 bytes]

All but the arity is little-endian. ``encode_rows`` does the same for whole columns.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal

from storage_lib.errors import CorruptFileError, InvalidInputError
from storage_lib.schema.encoding.binary_columns import encode_rows
from storage_lib.schema.types.data_types import DataType, TypeRoot

__all__ = ["EMPTY_ROW", "decode_bound", "decode_row", "encode_row", "encode_rows"]

EMPTY_ROW = bytes(12)
"""Row without fields: the partition of an unpartitioned table."""

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  a TIMESTAMP has no zone
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DATE = date(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_INLINE_BYTES_MAX = 7
_COMPACT_DIGITS_MAX = 18
_MILLIS_DIGITS = 3
_WIDE_DECIMAL_BYTES = 16
_HEADER_BITS = 8
_EXACT = Context(prec=40)
_FIXED = {
    TypeRoot.BOOLEAN: "<?",
    TypeRoot.TINYINT: "<b",
    TypeRoot.SMALLINT: "<h",
    TypeRoot.INTEGER: "<i",
    TypeRoot.BIGINT: "<q",
    TypeRoot.FLOAT: "<f",
    TypeRoot.DOUBLE: "<d",
    TypeRoot.DATE: "<i",
    TypeRoot.TIME: "<i",
}
_TEXT = frozenset({TypeRoot.CHAR, TypeRoot.VARCHAR})
_TIMESTAMPS = frozenset({TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ})


def encode_row(values: Sequence[object], types: Sequence[DataType]) -> bytes:
    """Serialize one row, arity first.

    Values are int, float, bool, str, bytes, Decimal, date, time, datetime (naive; aware for TIMESTAMP_LTZ) or None.
    Raises ``InvalidInputError`` for a value that is not of its type.
    """
    slots_at = null_bits_width(len(types))
    row = bytearray(slots_at + 8 * len(types))
    for index, (value, data_type) in enumerate(zip(values, types, strict=True)):
        at = slots_at + 8 * index
        if value is None:
            bit = index + _HEADER_BITS
            row[bit // 8] |= 1 << (bit % 8)
            reserved = _reserved_for_null(data_type)
            if reserved:
                row[at : at + 8] = struct.pack("<Q", len(row) << 32)
                row += bytes(reserved)
            continue
        try:
            _put(row, at, value, data_type)
        except (struct.error, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            message = f"{value!r} is not a value of type {data_type}: {error}"
            raise InvalidInputError(message) from error
    return len(types).to_bytes(4, "big") + bytes(row)


def decode_row(data: bytes, types: Sequence[DataType]) -> tuple[object, ...]:
    """Return the values of a serialized row, with the types that ``encode_row`` takes; TIMESTAMP_LTZ is in UTC.

    Nanoseconds of a TIMESTAMP(7..9) are truncated to microseconds; see ``decode_bound``. Raises ``CorruptFileError``
    if the bytes are not such a row, ``InvalidInputError`` for a date that Python can't represent.
    """
    return tuple(_decoded(data, index, types) for index in range(_checked_arity(data, types)))


def decode_bound(data: bytes, types: Sequence[DataType], *, upper: bool) -> tuple[object, ...]:
    """Decode a row of lower or upper bounds like ``decode_row``, but round inexact values outwards.

    A bound that Python can't represent at all is None, which means unknown.
    """
    bounds: list[object] = []
    for index in range(_checked_arity(data, types)):
        try:
            value = _decoded(data, index, types)
            if upper and isinstance(value, datetime) and _nanos_of_micro(data, index, types):
                value += _MICROSECOND
        except (InvalidInputError, OverflowError):
            value = None
        bounds.append(value)
    return tuple(bounds)


def null_bits_width(arity: int) -> int:
    """Return the number of bytes of the row kind and the null bits."""
    return (arity + 63 + _HEADER_BITS) // 64 * 8


def _put(row: bytearray, at: int, value: object, data_type: DataType) -> None:
    """Write one value into the slot at ``at``; append a value that does not fit to the variable part."""
    root = data_type.root
    if root in _FIXED:
        struct.pack_into(_FIXED[root], row, at, _fixed_value(value, root))
    elif root in _TIMESTAMPS:
        micros = _micros(value, root)
        millis, rest = divmod(micros, 1000)
        if (data_type.precision or 0) <= _MILLIS_DIGITS:
            struct.pack_into("<q", row, at, millis)
        else:
            # Arrow returns nanoseconds as a datetime with an additional attribute.
            nanos = rest * 1000 + getattr(value, "nanosecond", 0)
            struct.pack_into("<Q", row, at, len(row) << 32 | nanos)
            row += struct.pack("<q", millis)
    elif root is TypeRoot.DECIMAL:
        unscaled = _unscaled(value, data_type)
        if (data_type.precision or 0) <= _COMPACT_DIGITS_MAX:
            struct.pack_into("<q", row, at, unscaled)
        else:
            digits = unscaled.to_bytes(_minimal_width(unscaled), "big", signed=True)
            struct.pack_into("<Q", row, at, len(row) << 32 | len(digits))
            row += digits.ljust(_WIDE_DECIMAL_BYTES, b"\0")
    else:
        data = _content(value, root)
        if len(data) <= _INLINE_BYTES_MAX:
            row[at : at + 8] = data.ljust(7, b"\0") + bytes((0x80 | len(data),))
        else:
            struct.pack_into("<Q", row, at, len(row) << 32 | len(data))
            row += data.ljust(-(-len(data) // 8) * 8, b"\0")


def _content(value: object, root: TypeRoot) -> bytes:
    if root in _TEXT and isinstance(value, str):
        return value.encode()
    if root not in _TEXT and isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    message = f"expected {'text' if root in _TEXT else 'bytes'}, not a {type(value).__name__}"
    raise TypeError(message)


def _fixed_value(value: object, root: TypeRoot) -> object:
    if root is TypeRoot.DATE and isinstance(value, date) and not isinstance(value, datetime):
        return (value - _EPOCH_DATE).days
    if root is TypeRoot.TIME and isinstance(value, time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
    if isinstance(value, bool) is not (root is TypeRoot.BOOLEAN) or isinstance(value, date | time):
        message = f"a value of type {type(value).__name__} cannot be stored as {root.value}"
        raise TypeError(message)
    return value


def _micros(value: object, root: TypeRoot) -> int:
    if not isinstance(value, datetime):
        message = "expected a datetime"
        raise TypeError(message)
    if (value.tzinfo is None) is (root is TypeRoot.TIMESTAMP_LTZ):
        message = "a TIMESTAMP has no time zone, and a TIMESTAMP WITH LOCAL TIME ZONE needs one"
        raise ValueError(message)
    return (value - (_EPOCH if value.tzinfo is None else _EPOCH_UTC)) // _MICROSECOND


def _unscaled(value: object, data_type: DataType) -> int:
    if not isinstance(value, Decimal):
        message = "expected a Decimal"
        raise TypeError(message)
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        message = "it is not finite"
        raise ValueError(message)  # noqa: TRY004  the type is right
    shift = exponent + (data_type.scale or 0)
    number = int("".join(map(str, digits)) or "0") * (-1 if sign else 1)
    if shift < 0 and number % 10**-shift:
        message = "it has more digits behind the point"
        raise ValueError(message)
    unscaled = number * 10**shift if shift >= 0 else -(-number // 10**-shift) if number < 0 else number // 10**-shift
    if abs(unscaled) >= 10 ** (data_type.precision or 0):
        message = "it has too many digits"
        raise ValueError(message)
    return unscaled


def _minimal_width(number: int) -> int:
    """Return the number of bytes of the shortest two's complement, as in Java's BigInteger."""
    return ((number if number >= 0 else ~number).bit_length()) // 8 + 1


def _reserved_for_null(data_type: DataType) -> int:
    """Return the number of bytes that a null reserves in the variable part."""
    precision = data_type.precision or 0
    if data_type.root is TypeRoot.DECIMAL and precision > _COMPACT_DIGITS_MAX:
        return _WIDE_DECIMAL_BYTES
    return 8 if data_type.root in _TIMESTAMPS and precision > _MILLIS_DIGITS else 0


def _checked_arity(data: bytes, types: Sequence[DataType]) -> int:
    arity = int.from_bytes(data[:4], "big")
    if arity != len(types) or len(data) < 4 + null_bits_width(arity) + 8 * arity:
        wanted = ", ".join(map(str, types))
        message = f"{len(data)} bytes with an arity of {arity} are not a row of ({wanted}): {data[:64].hex()}"
        raise CorruptFileError(message)
    return arity


def _decoded(data: bytes, index: int, types: Sequence[DataType]) -> object:
    """Decode field ``index`` of a row whose arity was checked."""
    bit = index + _HEADER_BITS
    if data[4 + bit // 8] >> (bit % 8) & 1:
        return None
    at = 4 + null_bits_width(len(types)) + 8 * index
    data_type = types[index]
    root = data_type.root
    try:
        if root in _FIXED:
            (fixed,) = struct.unpack_from(_FIXED[root], data, at)
            return _of_fixed(fixed, root)
        if root in _TIMESTAMPS:
            epoch = _EPOCH_UTC if root is TypeRoot.TIMESTAMP_LTZ else _EPOCH
            if (data_type.precision or 0) <= _MILLIS_DIGITS:
                (millis,) = struct.unpack_from("<q", data, at)
                return epoch + timedelta(milliseconds=millis)
            nanos, offset = struct.unpack_from("<II", data, at)
            (millis,) = struct.unpack_from("<q", data, 4 + offset)
            return epoch + timedelta(milliseconds=millis, microseconds=nanos // 1000)
        if root is TypeRoot.DECIMAL:
            compact = (data_type.precision or 0) <= _COMPACT_DIGITS_MAX
            digits = data[at : at + 8][::-1] if compact else _variable(data, at)
            return Decimal(int.from_bytes(digits, "big", signed=True)).scaleb(-(data_type.scale or 0), _EXACT)
        inline = data[at + 7]
        content = data[at : at + (inline & 0x7F)] if inline & 0x80 else _variable(data, at)
        return content.decode() if root in _TEXT else content
    except OverflowError as error:
        message = f"a value of type {data_type} is outside of the years 1 to 9999: {data[at : at + 8].hex()}"
        raise InvalidInputError(message) from error
    except (struct.error, ValueError) as error:
        message = f"field {index} of a row is no {data_type}: {error}: {data[:64].hex()}"
        raise CorruptFileError(message) from error


def _of_fixed(value: object, root: TypeRoot) -> object:
    if root is TypeRoot.DATE:
        return _EPOCH_DATE + timedelta(days=value)  # type: ignore[arg-type]
    if root is TypeRoot.TIME:
        return (_EPOCH + timedelta(milliseconds=value)).time()  # type: ignore[arg-type]
    return value


def _variable(data: bytes, at: int) -> bytes:
    length, offset = struct.unpack_from("<II", data, at)
    content = data[4 + offset : 4 + offset + length]
    if len(content) != length:
        message = f"expected {length} bytes at {offset}"
        raise ValueError(message)
    return content


def _nanos_of_micro(data: bytes, index: int, types: Sequence[DataType]) -> int:
    if (types[index].precision or 0) <= _MILLIS_DIGITS:
        return 0
    (nanos,) = struct.unpack_from("<I", data, 4 + null_bits_width(len(types)) + 8 * index)
    return int(nanos) % 1000
