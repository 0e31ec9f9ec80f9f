"""Avro encoding of rows by column: each column is encoded separately, then joined row by row.

A record is the concatenation of its fields, a union the zigzag number of its branch (null is 0) before the value, a
string its length before it, an array or a map its count before its entries and a 0 after (only the 0 if empty).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.format.avro_types import AvroSchema
from storage_lib.schema.encoding.varint_columns import varints
from storage_lib.schema.types.nested_arrays import list_parts, map_parts, struct_child

_NULL, _VALUE, _END = b"\x00", b"\x02", b"\x00"


def encoded_rows(columns: Sequence[pa.Array], record: Mapping[str, Any]) -> bytes:
    """Encode all rows; ``columns`` have the types that ``avro_types.stored`` returns for ``record``."""
    return _bytes_of(_record(columns, record))


def encoded_records(columns: Sequence[pa.Array], record: Mapping[str, Any]) -> pa.Array:
    """Encode rows as ``encoded_rows``, each to a value of a binary array."""
    return _record(columns, record)


def _record(columns: Sequence[pa.Array], record: Mapping[str, Any]) -> pa.Array:
    return _joined([_encoded(column, each["type"]) for column, each in zip(columns, record["fields"], strict=True)])


def _encoded(array: pa.Array, of: AvroSchema) -> pa.Array:
    """Encode values, preceded by the branch if the type is a union."""
    if isinstance(of, str) or not isinstance(of, Sequence):
        return _plain(array, of)
    (inner,) = (each for each in of if each != "null")
    values = _joined([_repeated(_VALUE, len(array)), _plain(array, inner)])
    return values if array.null_count == 0 else pc.if_else(array.is_valid(), values, pa.scalar(_NULL, pa.binary()))


def _plain(array: pa.Array, of: AvroSchema) -> pa.Array:
    """Encode values; the result is arbitrary where the array is null."""
    type_ = array.type
    if isinstance(of, Mapping) and pa.types.is_list(type_):
        lists = list_parts(array)
        return _counted(_encoded(lists.values, of["items"]), lists.offsets)
    if isinstance(of, Mapping) and pa.types.is_map(type_):
        maps = map_parts(array)
        return _counted(_joined([_scalar(maps.keys), _encoded(maps.values, of["values"])]), maps.offsets)
    if isinstance(of, Mapping) and pa.types.is_struct(type_):
        return _record([struct_child(array, each["name"]) for each in of["fields"]], of)
    return _scalar(array)


def _scalar(array: pa.Array) -> pa.Array:
    type_ = array.type
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        content = pc.fill_null(array.cast(pa.binary()), b"")
        return _joined([varints(pc.binary_length(content).to_numpy().astype(np.int64))[0], content])
    if pa.types.is_floating(type_):
        values = np.ascontiguousarray(array.fill_null(0).to_numpy(zero_copy_only=False))
        width = type_.bit_width // 8
        fixed = pa.Array.from_buffers(pa.binary(width), len(array), [None, pa.py_buffer(values)])
        return fixed.cast(pa.binary())
    numbers = array.cast(pa.int8()) if pa.types.is_boolean(type_) else array
    integers = numbers.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    if pa.types.is_boolean(type_):
        return pa.array([b"\x00", b"\x01"], pa.binary()).take(pa.array(integers))
    return varints(integers)[0]


def _counted(entries: pa.Array, offsets: np.ndarray[tuple[int], np.dtype[np.int32]]) -> pa.Array:
    lengths = np.diff(offsets)
    texts = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), entries), pa.scalar(b"", pa.binary()))
    counts, _ = varints(lengths.astype(np.int64))
    some = _joined([counts, texts, _repeated(_END, len(lengths))])
    return pc.if_else(pa.array(lengths > 0), some, pa.scalar(_END, pa.binary()))


def _joined(parts: Sequence[pa.Array]) -> pa.Array:
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary()))


def _repeated(value: bytes, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.binary()), count)


def _bytes_of(array: pa.Array) -> bytes:
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
    return bytes(memoryview(array.buffers()[2])[offsets[0] : offsets[-1]])
