"""Digests of the rows of ranges: number of rows, sum of their hashes, size, and a few keys.

Two sides whose numbers and sums agree have the same rows, except for a chance of 2⁻⁶⁴.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from storage_lib.verification.key_ranges import OUTSIDE, KeyRanges
from storage_lib.verification.row_hashes import row_hashes

_RANGE = "\0range"
_HASH = "\0hash"
_SAMPLED_KEYS = 8_192
_SAMPLED_KEYS_MIN = 16
_UNLIMITED = np.iinfo(np.uint64).max


class RangeDigests:
    """Digests of one side's rows, range by range; ``add`` takes the rows in any order."""

    def __init__(self, ranges: KeyRanges, key: Sequence[str], columns: Sequence[str]) -> None:
        count = len(ranges.ranges)
        self.row_counts = np.zeros(count, dtype=np.int64)
        self.sizes = np.zeros(count, dtype=np.int64)
        """Bytes in memory."""
        self._sums = np.zeros(count, dtype=np.uint64)
        self._ranges = ranges
        self._key = [*key]
        self._columns = columns
        self._sampled = max(_SAMPLED_KEYS_MIN, _SAMPLED_KEYS // count)
        self._limits = np.full(count, _UNLIMITED, dtype=np.uint64)
        self._sample: pl.DataFrame | None = None

    def add(self, frame: pl.DataFrame) -> None:
        """Count rows; those outside of the ranges do not count."""
        ids = self._ranges.ids(frame)
        inside = ids != OUTSIDE
        if not inside.all():
            frame, ids = frame.filter(inside), ids[inside]
        if not frame.height:
            return
        counts = np.bincount(ids, minlength=self.row_counts.size)
        self.row_counts += counts
        self.sizes += counts * max(1, int(frame.estimated_size()) // frame.height)
        np.add.at(self._sums, ids, row_hashes(frame, self._columns))
        self._add_to_sample(frame.select(self._key), ids)

    def differs(self, other: RangeDigests) -> list[int]:
        """Return the ranges whose rows differ from those of the other side."""
        is_different = (self.row_counts != other.row_counts) | (self._sums != other._sums)
        return [int(place) for place in np.flatnonzero(is_different)]

    def keys(self, other: RangeDigests, place: int) -> pl.DataFrame:
        """Return some keys of a range, of both sides, in order and once each; all of them if it has few."""
        samples = [each.filter(pl.col(_RANGE) == place) for each in (self._sample, other._sample) if each is not None]
        return pl.concat(samples).select(self._key).unique().sort(self._key, nulls_last=False)

    def _add_to_sample(self, keys: pl.DataFrame, ids: np.ndarray) -> None:
        """Keep the keys with the lowest hashes of each range: they are spread evenly over the range."""
        hashes = row_hashes(keys, self._key)
        chosen = hashes < self._limits[ids]
        if not chosen.any():
            return
        found = keys.with_columns(pl.Series(_RANGE, ids), pl.Series(_HASH, hashes)).filter(chosen)
        candidates = found if self._sample is None else pl.concat([self._sample, found])
        kept = candidates.unique([_RANGE, _HASH]).sort(_HASH).group_by(_RANGE, maintain_order=True).head(self._sampled)
        self._sample = kept.select(found.columns)
        full = kept.group_by(_RANGE).agg(pl.col(_HASH).max(), pl.len()).filter(pl.col("len") >= self._sampled)
        self._limits[full[_RANGE].to_numpy()] = full[_HASH].to_numpy()
