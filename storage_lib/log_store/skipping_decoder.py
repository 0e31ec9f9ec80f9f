"""Reads a topic that also holds what is no change: such records are passed over, each with a warning.

A topic that others write may hold a record that nobody can read, and no later one would ever be reached behind it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from storage_lib.log_store.log_codec import ChangeDecoder, CorruptRecordError, DecodedChanges

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHOWN_BYTES = 80
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SkippingDecoder:
    """As ``decoder``, of ``topic``, but for the records that it can't read; picklable."""

    decoder: ChangeDecoder
    topic: str

    @property
    def name(self) -> str:
        """See ``ChangeDecoder.name``."""
        return self.decoder.name

    def decode(self, values: pa.Array, keys: pa.Array) -> DecodedChanges:
        """See ``ChangeDecoder.decode``; raises no ``CorruptRecordError``.

        Behind a bad record it goes on in small steps that grow: who puts one foreign record into a topic has put a
        thousand, and to look through all that follows for the next one costs the whole batch each time.
        """
        parts: list[tuple[int, DecodedChanges]] = []
        start, step = 0, len(values)
        while start < len(values):
            stop = min(start + step, len(values))
            try:
                parts.append((start, self.decoder.decode(values[start:stop], keys[start:stop])))
                start, step = stop, 2 * step
            except CorruptRecordError as error:
                bad = start + error.index
                excerpt = (values[bad].as_py() or b"")[:_SHOWN_BYTES]
                _log.warning(
                    "topic %s: passed over a record that is no %s change: %s. It starts with %r",
                    *(self.topic, self.name, error, excerpt),
                )
                if bad > start:
                    parts.append((start, self.decoder.decode(values[start:bad], keys[start:bad])))
                start, step = bad + 1, 1
        return _joined(parts) if parts else self.decoder.decode(values[:0], keys[:0])


def _joined(parts: Sequence[tuple[int, DecodedChanges]]) -> DecodedChanges:
    if len(parts) == 1:
        return parts[0][1]
    tables = [pa.Table.from_batches([each.rows]) for _, each in parts]
    rows = pa.concat_tables(tables).combine_chunks().to_batches()
    return DecodedChanges(
        rows=rows[0] if rows else parts[0][1].rows,
        kinds=pa.concat_arrays([each.kinds for _, each in parts]),
        record_indices=np.concatenate([start + each.record_indices for start, each in parts]),
    )
