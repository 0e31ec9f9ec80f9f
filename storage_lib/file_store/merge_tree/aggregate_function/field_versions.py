"""Values of one column in the versions of many keys, and selection of one value per key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

NOTHING = -1
"""Position that stands for no row."""


@dataclass(frozen=True, kw_only=True)
class FieldVersions:
    """Values by key, oldest first; ``starts`` has the position where each key begins. No key is empty.

    ``numbers`` are the indices of these keys among all ``count`` keys of the merge: a key may have no values here.
    ``retracts`` marks the retracted values; None if there are none.
    """

    values: pa.Array
    starts: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int64]
    count: int
    retracts: npt.NDArray[np.bool_] | None

    @property
    def lasts(self) -> npt.NDArray[np.int64]:
        """Position of each key's newest row."""
        return np.append(self.starts[1:], len(self.values))[: len(self.starts)] - 1

    @property
    def is_valid(self) -> npt.NDArray[np.bool_]:
        """Mask of values that are not null."""
        return self.values.is_valid().to_numpy(zero_copy_only=False)

    @property
    def is_added(self) -> npt.NDArray[np.bool_]:
        """Mask of values that are neither null nor retracted."""
        return self.is_valid if self.retracts is None else self.is_valid & ~self.retracts

    def only(self, rows: npt.NDArray[np.bool_]) -> FieldVersions:
        """Return the versions without the other rows."""
        if bool(rows.all()):
            return self
        selected = np.flatnonzero(rows)
        group = np.repeat(np.arange(len(self.starts)), self.lasts - self.starts + 1)[selected]
        starts = np.flatnonzero(np.append(True, group[1:] != group[:-1])) if len(selected) else np.empty(0, np.int64)
        return FieldVersions(
            values=self.values.take(pa.array(selected)),
            starts=starts,
            numbers=self.numbers[group[starts]],
            count=self.count,
            retracts=None if self.retracts is None else self.retracts[selected],
        )

    def without_retracts(self) -> FieldVersions:
        """Return the added values only."""
        return self if self.retracts is None else self.only(~self.retracts)

    def last_of(self, rows: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """Return the newest of those rows of each key, or ``NOTHING``."""
        positions = np.where(rows, np.arange(len(rows)), NOTHING)
        return np.maximum.reduceat(positions, self.starts) if len(self.starts) else self.starts

    def first_of(self, rows: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """Return the oldest of those rows of each key, or ``NOTHING``."""
        if not len(self.starts):
            return self.starts
        first = np.minimum.reduceat(np.where(rows, np.arange(len(rows)), len(rows)), self.starts)
        return np.where(first < len(rows), first, NOTHING)

    def picked(self, rows: npt.NDArray[np.int64]) -> pa.Array:
        """Return one value per key of the merge: the row's, or null for ``NOTHING`` and for keys without values."""
        if len(self.starts) == self.count:
            return pick(self.values, rows)
        everywhere = np.full(self.count, NOTHING)
        everywhere[self.numbers] = rows
        return pick(self.values, everywhere)

    def spread(self, values: pa.Array) -> pa.Array:
        """Extend values of the keys here to all keys of the merge, with null for the others."""
        if len(self.starts) == self.count:
            return values
        everywhere = np.full(self.count, NOTHING)
        everywhere[self.numbers] = np.arange(len(self.numbers))
        return pick(values, everywhere)


def pick(values: pa.Array, rows: npt.NDArray[np.int64]) -> pa.Array:
    """Return the values of those rows; null for ``NOTHING``."""
    missing = rows < 0
    return values.take(pa.array(rows, mask=missing) if missing.any() else pa.array(rows))


def rebuilt(like: pa.Schema, columns: Sequence[pa.Array]) -> pa.RecordBatch:
    """Return a batch of those columns with the names and types of another."""
    return pa.RecordBatch.from_arrays(list(columns), schema=like)
