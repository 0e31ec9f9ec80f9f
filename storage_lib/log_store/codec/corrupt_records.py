"""Decode records, skipping corrupt ones and reporting each of them.

A topic that other programs write may hold a corrupt record, which would otherwise block every later one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from storage_lib.log_store.codec.log_codec import ChangeDecoder, CorruptRecordError, DecodedChanges

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def decode_but_corrupt(
    decoder: ChangeDecoder, values: pa.Array, keys: pa.Array, tell: Callable[[int, CorruptRecordError], None]
) -> DecodedChanges:
    """Decode as ``decoder.decode`` does, but skip corrupt records; call ``tell`` with the index and error of each.

    After a corrupt record, decoding continues in steps that start at one record and double: corrupt records come in
    runs, and each failed step costs a decode of the whole step.
    """
    parts: list[tuple[int, DecodedChanges]] = []
    start, step = 0, len(values)
    while start < len(values):
        stop = min(start + step, len(values))
        try:
            parts.append((start, decoder.decode(values[start:stop], keys[start:stop])))
            start, step = stop, 2 * step
        except CorruptRecordError as error:
            bad = start + error.index
            tell(bad, error)
            if bad > start:
                parts.append((start, decoder.decode(values[start:bad], keys[start:bad])))
            start, step = bad + 1, 1
    return _joined(parts) if parts else decoder.decode(values[:0], keys[:0])


def _joined(parts: Sequence[tuple[int, DecodedChanges]]) -> DecodedChanges:
    if len(parts) == 1 and parts[0][0] == 0:
        return parts[0][1]
    tables = [pa.Table.from_batches([each.rows]) for _, each in parts]
    rows = pa.concat_tables(tables).combine_chunks().to_batches()
    return DecodedChanges(
        rows=rows[0] if rows else parts[0][1].rows,
        kinds=pa.concat_arrays([each.kinds for _, each in parts]),
        record_indices=np.concatenate([start + each.record_indices for start, each in parts]),
    )
