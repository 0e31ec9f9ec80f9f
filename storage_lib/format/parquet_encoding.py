"""Choice of encoding and compression of each column of a Parquet file, from a sample of its rows.

For a nested column, each leaf is a Parquet column with a dotted path: ``tags.list.element``, ``prices.key_value.key``.
A dictionary only pays off for values that repeat (for a high-cardinality string it doubles the cost of writing), and
compression only for bytes that shrink (random doubles don't, and reading them raw is three times faster).
Integers without a dictionary (numbers, dates, timestamps, decimals of up to 18 digits) are stored as packed
differences, uncompressed, if these are smaller than the compressed values: written in half the time, read in a quarter
of it. Strings stay plain: Paimon's Java core 1.4 misreads DELTA_LENGTH_BYTE_ARRAY.
(https://parquet.apache.org/docs/file-format/data-pages/encodings/)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.schema.types.nested_arrays import list_parts, map_parts, struct_child

DICTIONARY_SAMPLE_ROWS = 4_096
DICTIONARY_DISTINCT_MAX = 2 / 3
COMPRESSION_SAMPLE_ROWS = 4_096
COMPRESSED_SIZE_MAX = 0.85
COMPRESSION_SAMPLE_BYTES_MIN = 4_096
DIFFERENCES_SIZE_MAX = 0.75
"""Share of the plain size; above it, plain integers are hardly larger and are read faster."""

_DIFFERENCES_BLOCK = 128
_DECIMAL_DIGITS_IN_INTEGER = 18
_DECIMAL_DIGITS_IN_32_BITS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnEncodings:
    """Paths of columns with a dictionary or stored as differences, and codec and level by column.

    ``compression_level`` has only compressed columns.
    """

    dictionary: tuple[str, ...]
    differences: tuple[str, ...]
    compression: Mapping[str, str]
    compression_level: Mapping[str, int]


def column_encodings(sample: pa.RecordBatch, compression: str, compression_level: int | None) -> ColumnEncodings:
    """Choose for each column of ``sample``; for an empty sample, no dictionaries, and compression for all columns."""
    leaves = dict(_leaves(sample.columns, sample.schema.names))
    dictionary = tuple(path for path, leaf in leaves.items() if _repeats(leaf))
    codec = None if compression == "none" else pa.Codec(compression, compression_level)
    middles = {path: _middle(leaf) for path, leaf in leaves.items() if path not in dictionary}
    shares = {path: 1.0 if codec is None else _compressed_share(part, codec) for path, part in middles.items()}
    # Fields of nested columns stay plain: other encodings gain little there.
    flat = middles.keys() & set(sample.schema.names)
    as_differences = {path for path in flat if _differences_are_smaller(middles[path], shares[path])}
    compressed = set(dictionary) | {path for path, share in shares.items() if share <= COMPRESSED_SIZE_MAX}
    compressed = set() if codec is None else compressed - as_differences
    return ColumnEncodings(
        dictionary=dictionary,
        differences=tuple(path for path in leaves if path in as_differences),
        compression={path: compression if path in compressed else "none" for path in leaves},
        compression_level={} if compression_level is None else dict.fromkeys(compressed, compression_level),
    )


def _leaves(arrays: Iterable[pa.Array], paths: Iterable[str]) -> Iterator[tuple[str, pa.Array]]:
    """Yield path and values of every leaf column that Parquet makes of these columns."""
    for path, array in zip(paths, arrays, strict=True):
        if pa.types.is_list(array.type):
            yield from _leaves([list_parts(array).values], [f"{path}.list.element"])
        elif pa.types.is_map(array.type):
            parts = map_parts(array)
            yield from _leaves([parts.keys, parts.values], [f"{path}.key_value.key", f"{path}.key_value.value"])
        elif pa.types.is_struct(array.type):
            names = [array.type.field(index).name for index in range(array.type.num_fields)]
            yield from _leaves([struct_child(array, name) for name in names], [f"{path}.{name}" for name in names])
        else:
            yield path, array


def _repeats(column: pa.Array) -> bool:
    if pa.types.is_boolean(column.type) or len(column) == 0:
        return False
    rows = np.linspace(0, len(column) - 1, min(len(column), DICTIONARY_SAMPLE_ROWS)).astype(np.int64)
    distinct = pc.count_distinct(column.take(pa.array(rows)), mode="all").as_py()
    return bool(distinct <= DICTIONARY_DISTINCT_MAX * len(rows))


def _middle(column: pa.Array) -> pa.Array:
    """Return consecutive values from the middle, as Parquet stores them: nulls take no space."""
    start = max(0, (len(column) - COMPRESSION_SAMPLE_ROWS) // 2)
    part = column.slice(start, COMPRESSION_SAMPLE_ROWS).drop_null()
    # ``take`` copies this part into buffers of its own, whatever the column was sliced from.
    part = part.take(pa.array(np.arange(len(part))))
    kind = part.type
    if pa.types.is_decimal(kind) and kind.precision <= _DECIMAL_DIGITS_IN_INTEGER:
        narrow = np.int32 if kind.precision <= _DECIMAL_DIGITS_IN_32_BITS else np.int64
        return pa.array(np.frombuffer(part.buffers()[1], dtype=np.int64)[: 2 * len(part) : 2].astype(narrow))
    if pa.types.is_temporal(kind):
        return part.view(pa.int32() if kind.bit_width == pa.int32().bit_width else pa.int64())
    return part.cast(pa.int32()) if pa.types.is_integer(kind) and kind.bit_width < pa.int32().bit_width else part


def _compressed_share(part: pa.Array, codec: pa.Codec) -> float:
    """Return the compressed share of the values' size; a sample too small to tell counts as compressible."""
    values = part.buffers()[-1]
    if values is None or values.size < COMPRESSION_SAMPLE_BYTES_MIN:
        return COMPRESSED_SIZE_MAX
    return float(codec.compress(values).size / values.size)


def _differences_are_smaller(part: pa.Array, compressed_share: float) -> bool:
    if not pa.types.is_integer(part.type) or not len(part):
        return False
    values = part.to_numpy().astype(np.float64)
    whole = max(1, len(values) // _DIFFERENCES_BLOCK) * _DIFFERENCES_BLOCK
    blocks = np.resize(np.diff(values, prepend=values[0]), whole).reshape(-1, _DIFFERENCES_BLOCK)
    bits = np.ceil(np.log2(np.ptp(blocks, axis=1) + 1)).mean()
    return bool(bits / part.type.bit_width <= min(DIFFERENCES_SIZE_MAX, compressed_share))
