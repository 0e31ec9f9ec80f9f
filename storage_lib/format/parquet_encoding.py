"""How each column of a Parquet file is best stored, decided from a sample of its rows.

Of a nested column each leaf is one to Parquet, by its dotted path: ``tags.list.element``, ``prices.key_value.key``.

A dictionary pays only for values that repeat (for a high-cardinality string it doubles the cost of writing), and
compression only for bytes that shrink (random doubles don't, and reading them raw is three times faster).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.schema.nested_arrays import list_parts, map_parts, struct_child

DICTIONARY_SAMPLE_ROWS = 4_096
DICTIONARY_DISTINCT_MAX = 2 / 3
COMPRESSION_SAMPLE_ROWS = 4_096
COMPRESSED_SIZE_MAX = 0.85
COMPRESSION_SAMPLE_BYTES_MIN = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnEncodings:
    """Paths of columns with a dictionary, codec per column, and level per compressed column."""

    dictionary: tuple[str, ...]
    compression: Mapping[str, str]
    compression_level: Mapping[str, int]


def column_encodings(sample: pa.RecordBatch, compression: str, compression_level: int | None) -> ColumnEncodings:
    """Choose for each column of ``sample``; an empty sample gets dictionaries nowhere and compression everywhere."""
    leaves = dict(_leaves(sample.columns, sample.schema.names))
    dictionary = tuple(path for path, leaf in leaves.items() if _repeats(leaf))
    codec = None if compression == "none" else pa.Codec(compression, compression_level)
    compressed = {
        path for path, leaf in leaves.items() if codec is not None and (path in dictionary or _shrinks(leaf, codec))
    }
    return ColumnEncodings(
        dictionary=dictionary,
        compression={path: compression if path in compressed else "none" for path in leaves},
        compression_level={} if compression_level is None else dict.fromkeys(compressed, compression_level),
    )


def _leaves(arrays: Iterable[pa.Array], paths: Iterable[str]) -> Iterator[tuple[str, pa.Array]]:
    """The values of every leaf column that Parquet makes of these columns."""
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


def _shrinks(column: pa.Array, codec: pa.Codec) -> bool:
    start = max(0, (len(column) - COMPRESSION_SAMPLE_ROWS) // 2)
    part = column.slice(start, COMPRESSION_SAMPLE_ROWS)
    # Taking makes buffers of this part alone, whatever the column was sliced from.
    part = part.take(pa.array(np.arange(len(part))))
    values = part.buffers()[-1]
    if values is None or values.size < COMPRESSION_SAMPLE_BYTES_MIN:
        return True
    return bool(codec.compress(values).size <= COMPRESSED_SIZE_MAX * values.size)
