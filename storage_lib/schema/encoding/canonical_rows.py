"""Encode rows as bytes that are equal if and only if the rows are; identifies rows in a table without a primary key.

Nulls are equal, NaNs are equal, -0.0 equals 0.0, maps are equal regardless of the order of their entries. The bytes of
one row are never a prefix of another's, and they sort like the columns, in their order, nulls first:

    null                    01, and zeros if the type has a fixed width
    value                   02, then
      boolean, numbers      big-endian, with the sign bit flipped so that smaller ones come first
      text, bytes           the bytes, with 00 escaped as 00 FF, and 00 01 at the end
      ARRAY, MAP, MULTISET  the elements (of a map: key and value, sorted), and 00 at the end
      ROW                   the fields

Works column by column, without a loop over rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.schema.encoding.decimal_bytes import big_endian_words

_NULL, _VALUE = 1, 2
_END_OF_TEXT = b"\x00\x01"
_END_OF_LIST = b"\x00"

_Bytes = npt.NDArray[np.uint8]


def canonical_rows(columns: Sequence[pa.Array]) -> pa.LargeBinaryArray:
    """Encode each row of one or more columns of equal length."""
    if not len(columns[0]):
        return _no_bytes()
    parts: list[_Bytes | pa.Array] = []
    for column in columns:
        parts += _parts(column)
    pieces: list[pa.Array] = []
    fixed: list[_Bytes] = []
    for part in parts:
        if isinstance(part, np.ndarray):
            fixed.append(part)
            continue
        if fixed:
            pieces.append(_joined(fixed))
        pieces.append(part)
        fixed = []
    if fixed:
        pieces.append(_joined(fixed))
    if len(pieces) == 1:
        return pieces[0]
    return pc.binary_join_element_wise(*pieces, pa.scalar(b"", pa.large_binary()))


def _parts(column: pa.Array) -> list[_Bytes | pa.Array]:
    """Return the parts of one column's bytes, in order: of fixed width (rows by bytes) or large binary."""
    flags = np.where(column.is_valid().to_numpy(zero_copy_only=False), _VALUE, _NULL).astype(np.uint8)[:, None]
    kind = column.type
    if pa.types.is_struct(kind):
        return [flags, *(part for child in column.flatten() for part in _parts(child))]
    if pa.types.is_map(kind):
        return [flags, _entries(column), _constant(_END_OF_LIST, len(column))]
    if pa.types.is_list(kind):
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
        return [flags, _elements(canonical_rows([column.flatten()]), lengths), _constant(_END_OF_LIST, len(column))]
    if _is_text(kind):
        return [flags, _escaped(column), _constant(_END_OF_TEXT, len(column))]
    return [flags, _number_bytes(column)]


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )


def _escaped(column: pa.Array) -> pa.Array:
    text = pc.fill_null(column.cast(pa.large_binary()), b"")
    if pc.any(pc.match_substring(text, b"\x00")).as_py():
        text = pc.replace_substring(text, pattern=b"\x00", replacement=b"\x00\xff")
    return text


def _entries(column: pa.Array) -> pa.Array:
    """Encode the entries of each map, sorted by their bytes."""
    lengths = np.where(column.is_valid().to_numpy(zero_copy_only=False), np.diff(column.offsets.to_numpy()), 0)
    starts = column.offsets.to_numpy()[:-1]
    row_of_entry = np.repeat(np.arange(len(column)), lengths)
    place = np.arange(len(row_of_entry)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    taken = pa.array(starts[row_of_entry] + place)
    entries = canonical_rows([column.keys.take(taken), column.items.take(taken)])
    frame = pl.DataFrame({"row": row_of_entry, "entry": pl.Series(pl.from_arrow(entries))})
    order = frame.with_row_index("at").sort("row", "entry")["at"].to_numpy()
    return _elements(entries.take(pa.array(order.astype(np.int64))), lengths)


def _elements(elements: pa.Array, lengths: npt.NDArray[np.int64]) -> pa.Array:
    """Join the bytes of each row's consecutive elements to one value, without copying."""
    _, offset_buffer, data = elements.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int64)[elements.offset : elements.offset + len(elements) + 1]
    ends = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    joined = np.ascontiguousarray(offsets[ends])
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(lengths), [None, pa.py_buffer(joined), data])


def _no_bytes() -> pa.Array:
    offsets = pa.py_buffer(np.zeros(1, dtype=np.int64))
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), 0, [None, offsets, pa.py_buffer(b"")])


def _number_bytes(column: pa.Array) -> _Bytes:
    """Encode numbers, dates and times as bytes that sort as they do; zeros for nulls."""
    kind = column.type
    if pa.types.is_decimal(kind):
        big_endian = big_endian_words(column).copy()
        big_endian[:, 0] ^= 0x80
        return _without_nulls(big_endian, column)
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif pa.types.is_date32(kind) or pa.types.is_time32(kind):
        column = column.view(pa.int32())
    elif pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        column = column.view(pa.int64())
    values = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    width = values.dtype.itemsize
    if values.dtype.kind == "f":
        bits = np.where(np.isnan(values), values.dtype.type(np.nan), values + values.dtype.type(0))
        integers = bits.view(f"i{width}")
        # Inverted for negative numbers; adding zero above made -0.0 and 0.0 equal.
        ordered = np.where(integers < 0, ~integers, integers ^ _sign_bit(width))
    else:
        ordered = values ^ _sign_bit(width)
    rows = np.ascontiguousarray(ordered.astype(f">i{width}")).view(np.uint8).reshape(-1, width)
    return _without_nulls(rows, column)


def _sign_bit(width: int) -> npt.NDArray[np.signedinteger]:
    sign: npt.NDArray[np.signedinteger] = np.array(1 << (8 * width - 1), dtype=f"u{width}").view(f"i{width}")
    return sign


def _without_nulls(rows: _Bytes, column: pa.Array) -> _Bytes:
    if column.null_count:
        rows = rows.copy()
        rows[column.is_null().to_numpy(zero_copy_only=False)] = 0
    return rows


def _constant(value: bytes, count: int) -> _Bytes:
    return np.broadcast_to(np.frombuffer(value, dtype=np.uint8), (count, len(value)))


def _joined(parts: Sequence[_Bytes]) -> pa.Array:
    """Concatenate parts of fixed width, row by row, as large binary."""
    rows = np.concatenate(parts, axis=1)
    offsets = np.arange(len(rows) + 1, dtype=np.int64) * rows.shape[1]
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(rows), [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(rows))]
    )
