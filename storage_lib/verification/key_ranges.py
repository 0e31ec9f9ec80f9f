"""Ranges of a key, each from one key up to, and without, another.

Keys of several columns are ordered by the first column in which they differ. Null comes first, NaN last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from storage_lib.verification.compared_rows import KeyBounds

RangeIds: TypeAlias = npt.NDArray[np.int64]

OUTSIDE = -1
_RANGE = "\0range"
_ROW = "\0row"


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Keys from ``low`` up to, and without, ``high``; None is unlimited."""

    low: tuple[Any, ...] | None = None
    high: tuple[Any, ...] | None = None

    def divided(self, keys: pl.DataFrame, parts: int) -> list[KeyRange]:
        """Divide by keys of the range, given in order and once each, into about ``parts`` ranges of as many of them.

        The range itself if it has one key only.
        """
        # Without the first key: nothing comes before it.
        places = sorted({place * keys.height // parts for place in range(1, parts)} - {0})
        starts = [keys.row(place) for place in places or range(1, min(2, keys.height))]
        return [KeyRange(*ends) for ends in zip([self.low, *starts], [*starts, self.high], strict=True)]


class KeyRanges:
    """Several ranges, disjoint and in order; the id of each is its place."""

    def __init__(
        self, ranges: Sequence[KeyRange], key: Mapping[str, pl.DataType], *, read_by: str | None = None
    ) -> None:
        """``key``: the type of each column. ``read_by``: the first column, if all sides order its values alike."""
        self.ranges = ranges
        self._key = [*key]
        self._first = OUTSIDE if ranges[0].low is not None else 0
        marks: dict[tuple[Any, ...], int] = {}
        for place, each in enumerate(ranges):
            if each.low is not None:
                marks[each.low] = place
            if each.high is not None:
                marks[each.high] = OUTSIDE  # unless the next range begins there
        self._marks = pl.DataFrame(
            [(*key, place) for key, place in marks.items()],
            schema={**key, _RANGE: pl.Int64},
            orient="row",
        )
        low, high = (None if end is None else end[0] for end in (ranges[0].low, ranges[-1].high))
        is_limited = low is not None or high is not None
        self.bounds = KeyBounds(read_by, low, high) if read_by is not None and is_limited else None
        """Bounds of the keys of all ranges together; None if no side can read by them."""

    def ids(self, frame: pl.DataFrame) -> RangeIds:
        """Return the range of each row's key, or ``OUTSIDE``."""
        if not self._marks.height:
            return np.full(frame.height, self._first)
        marks = self._marks.with_columns(pl.lit(-1, pl.Int64).alias(_ROW))
        rows = frame.select(
            *self._key,
            pl.lit(None, pl.Int64).alias(_RANGE),
            pl.int_range(pl.len(), dtype=pl.Int64).alias(_ROW),
        )
        ordered = pl.concat([marks, rows]).sort([*self._key, _ROW], nulls_last=False)
        found = ordered.select(_ROW, pl.col(_RANGE).forward_fill().fill_null(self._first)).filter(pl.col(_ROW) >= 0)
        return found.sort(_ROW)[_RANGE].to_numpy()
