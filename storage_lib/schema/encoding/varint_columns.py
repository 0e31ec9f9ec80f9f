"""Encode and decode columns of zigzag varints and length-prefixed bytes, as in Kafka's records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    Int64s = np.ndarray[tuple[int], np.dtype[np.int64]]
    Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]

_GROUP_BITS = 7
_GROUP = np.uint64(0x7F)
_MORE = np.uint64(0x80)
_VARLONG_BYTES_MAX = 10
_VIEW_INLINE_BYTES = 12
_VIEW_PREFIX_BYTES = 4


def varints(numbers: Int64s) -> tuple[pa.Array, Int64s]:
    """Encode each number as a zigzag varint (a binary array); return their sizes in bytes as well."""
    zigzag = ((numbers << 1) ^ (numbers >> 63)).astype(np.uint64)
    sizes = np.ones(len(numbers), np.int64)
    for group in range(1, _VARLONG_BYTES_MAX):
        sizes += (zigzag >> np.uint64(_GROUP_BITS * group)) > 0
    offsets = np.zeros(len(numbers) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    data = np.zeros(offsets[-1], np.uint8)
    for group in range(int(sizes.max(initial=0))):
        has_group = sizes > group
        bits = (zigzag[has_group] >> np.uint64(_GROUP_BITS * group)) & _GROUP
        more = np.where(sizes[has_group] > group + 1, _MORE, np.uint64(0))
        data[offsets[:-1][has_group] + group] = (bits | more).astype(np.uint8)
    array = pa.Array.from_buffers(pa.binary(), len(numbers), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return array, sizes


def read_varints(data: Bytes, position: Int64s) -> tuple[Int64s, Int64s]:
    """Decode the zigzag varints at ``position``; return the positions after them as well."""
    zigzag = np.zeros(len(position), np.uint64)
    has_more = np.ones(len(position), bool)
    position = position.copy()
    last = len(data) - 1
    for group in range(_VARLONG_BYTES_MAX):
        byte = data[np.minimum(position, last)].astype(np.uint64)
        bits = (byte & _GROUP) << np.uint64(_GROUP_BITS * group)
        zigzag |= np.where(has_more, bits, np.uint64(0))
        position += has_more
        has_more &= byte >= _MORE
        if not has_more.any():
            break
    return (zigzag >> np.uint64(1)).astype(np.int64) ^ -(zigzag & np.uint64(1)).astype(np.int64), position


def bytes_at(data: Bytes, start: Int64s, length: Int64s) -> pa.Array:
    """Return the slices of ``data`` at ``start`` as a binary array; a negative length means null.

    The slices become views of ``data`` first (Arrow's binary_view: length, then up to 12 bytes inline, or 4 bytes of
    prefix, a buffer index and an offset); casting the views to binary copies all at once.
    """
    count = len(start)
    sizes = np.maximum(length, 0)
    is_long = sizes > _VIEW_INLINE_BYTES
    views = np.zeros((count, 4), "<i4")
    views[:, 0] = sizes
    if is_long.all():
        views[:, 1] = _windows(data, start, _VIEW_PREFIX_BYTES).view("<i4")[:, 0]
        views[:, 3] = start
    else:
        head = _windows(data, start, _VIEW_INLINE_BYTES)
        head = np.where(np.arange(_VIEW_INLINE_BYTES) < sizes[:, None], head, np.uint8(0)).view("<i4")
        head[is_long, 1] = 0
        head[is_long, 2] = start[is_long]
        views[:, 1:] = head
    validity = None if (length >= 0).all() else pa.py_buffer(np.packbits(length >= 0, bitorder="little"))
    array = pa.Array.from_buffers(pa.binary_view(), count, [validity, pa.py_buffer(views), pa.py_buffer(data)])
    return array.cast(pa.binary())


def _windows(data: Bytes, start: Int64s, size: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """Return ``size`` bytes from each start, zero-padded at the end of the data."""
    if not len(start) or int(start.max()) + size > len(data):
        data = np.concatenate([data, np.zeros(size, np.uint8)])
    return np.lib.stride_tricks.sliding_window_view(data, size)[np.minimum(start, len(data) - size)]
