"""Convert columns of decimals to and from their unscaled values as big-endian two's complement bytes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_DECIMAL_BYTES = 16
_SIGN_BIT = 7


def big_endian_words(column: pa.Array) -> npt.NDArray[np.uint8]:
    """Return a view of the 16 bytes of every unscaled value, highest first. Undefined for nulls."""
    # The buffer of an empty child of a nested column may have any size.
    size = len(column) * _DECIMAL_BYTES
    data = np.frombuffer(column.buffers()[1], np.uint8)[column.offset * _DECIMAL_BYTES :][:size]
    return data.reshape(-1, _DECIMAL_BYTES)[:, ::-1]


def unscaled_bytes(column: pa.Array) -> pa.Array:
    """Return Java's ``BigInteger.toByteArray`` of every unscaled value: without leading bytes that repeat the sign."""
    count = len(column)
    big_endian = big_endian_words(column)
    sign = big_endian[:, 0] >> _SIGN_BIT
    differs = big_endian != (sign * np.uint8(0xFF))[:, None]
    has_digits = differs.any(axis=1)
    first = np.where(has_digits, differs.argmax(axis=1), _DECIMAL_BYTES - 1)
    needs_sign_byte = has_digits & ((big_endian[np.arange(count), first] >> _SIGN_BIT) != sign)
    start = first - needs_sign_byte
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(_DECIMAL_BYTES - start, out=offsets[1:])
    flat = np.ascontiguousarray(big_endian[np.arange(_DECIMAL_BYTES) >= start[:, None]])
    text = pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(flat)])
    return pc.if_else(column.is_valid(), text, pa.scalar(None, pa.binary()))


def decimals_of_bytes(unscaled: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Decode the output of ``unscaled_bytes``. Raises ``ValueError`` for a value of 0 or more than 16 bytes."""
    count = len(unscaled)
    filled = pc.fill_null(unscaled, b"\0")
    _, offset_bytes, data = filled.buffers()
    offsets = np.frombuffer(offset_bytes, np.int32)[filled.offset : filled.offset + count + 1]
    lengths = np.diff(offsets)
    if count and (lengths.min() < 1 or lengths.max() > _DECIMAL_BYTES):
        message = f"a {arrow} of {lengths.max()} bytes"
        raise ValueError(message)
    flat = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]] if count else np.zeros(0, np.uint8)
    sign = flat[offsets[:-1] - offsets[0]] >> _SIGN_BIT
    big_endian = np.repeat((sign * np.uint8(0xFF))[:, None], _DECIMAL_BYTES, axis=1)
    big_endian[np.arange(_DECIMAL_BYTES) >= (_DECIMAL_BYTES - lengths)[:, None]] = flat
    little_endian = np.ascontiguousarray(big_endian[:, ::-1])
    decimals = pa.Array.from_buffers(arrow, count, [None, pa.py_buffer(little_endian)])
    decimals.validate(full=True)
    return pc.if_else(unscaled.is_valid(), decimals, pa.scalar(None, arrow))
