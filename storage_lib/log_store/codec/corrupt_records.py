"""Reads records among which some are no change: those are passed over, and each of them is told.

A topic that others write may hold a record that nobody can read, and no later one would ever be reached behind it.
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
    """As ``decoder.decode``, but for the records that it can't read: ``tell`` hears the index of each.

    Behind a bad record it goes on in small steps that grow: who puts one foreign record into a topic has put a
    thousand, and to look through all that follows for the next one costs the whole batch each time.
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
