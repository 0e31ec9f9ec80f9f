"""How each column of a Parquet file is best stored, decided from a sample of its rows.

A dictionary pays only for values that repeat (for a high-cardinality string it doubles the cost of writing), and
compression only for bytes that shrink (random doubles don't, and reading them raw is three times faster).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

DICTIONARY_SAMPLE_ROWS = 4_096
DICTIONARY_DISTINCT_MAX = 2 / 3
COMPRESSION_SAMPLE_ROWS = 4_096
COMPRESSED_SIZE_MAX = 0.85
COMPRESSION_SAMPLE_BYTES_MIN = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnEncodings:
    """Names of columns with a dictionary, codec per column, and level per compressed column."""

    dictionary: tuple[str, ...]
    compression: Mapping[str, str]
    compression_level: Mapping[str, int]


def column_encodings(sample: pa.RecordBatch, compression: str, compression_level: int | None) -> ColumnEncodings:
    """Choose for each column of ``sample``; an empty sample gets dictionaries nowhere and compression everywhere."""
    names = sample.schema.names
    dictionary = tuple(name for name in names if _repeats(sample.column(name)))
    codec = None if compression == "none" else pa.Codec(compression, compression_level)
    compressed = {
        name for name in names if codec is not None and (name in dictionary or _shrinks(sample.column(name), codec))
    }
    return ColumnEncodings(
        dictionary=dictionary,
        compression={name: compression if name in compressed else "none" for name in names},
        compression_level={} if compression_level is None else dict.fromkeys(compressed, compression_level),
    )


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
