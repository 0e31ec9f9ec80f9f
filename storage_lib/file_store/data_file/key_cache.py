"""Cache of keys of data files, so that later searches for keys open only the files that contain them, if any.

Lookups search it, and so does the Iceberg view, for older versions of new rows.

Data files are immutable, so entries never become stale; the least recently used file is evicted when memory is full.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from storage_lib.format.file_format import RowGroupBounds

Integers = npt.NDArray[np.integer]
Positions = npt.NDArray[np.int64]
Int64s = npt.NDArray[np.int64]

_FILE_OVERHEAD_BYTES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKeys:
    """Integer keys of one file that is sorted by them, as far as they have been read: by row group."""

    bounds: RowGroupBounds
    groups: Mapping[int, Integers] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Approximate size in memory, in bytes."""
        return _FILE_OVERHEAD_BYTES + self.bounds.nbytes + sum(keys.nbytes for keys in self.groups.values())

    def missing(self, searched: Integers | None) -> list[int]:
        """Return the row groups that may contain one of the keys (ascending; None: all) and have not been read."""
        return [group for group in self._candidates(searched) if group not in self.groups]

    def places(self, searched: Integers | None) -> tuple[Positions, Int64s]:
        """Return positions and keys of the rows with searched keys. REQUIRES that no group is ``missing``."""
        positions, keys = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for group in self._candidates(searched):
            start = int(self.bounds.ends[group - 1]) if group else 0
            values = self.groups[group]
            found = np.arange(len(values)) if searched is None else _places(searched, values)
            positions.append(found + start)
            keys.append(values[found].astype(np.int64, copy=False))
        return np.concatenate(positions), np.concatenate(keys)

    def _candidates(self, searched: Integers | None) -> list[int]:
        if searched is None:
            return list(range(len(self.bounds.ends)))
        first = np.searchsorted(searched, self.bounds.lows)
        end = np.searchsorted(searched, self.bounds.highs, side="right")
        candidates: list[int] = np.flatnonzero(first < end).tolist()
        return candidates


class KeyCache:
    """Keys by the path of their file, up to ``bytes_max`` bytes in total. Threads may share it."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._files: OrderedDict[str, FileKeys] = OrderedDict()
        self._lock = threading.Lock()

    def places(
        self,
        path: str,
        searched: Integers | None,
        *,
        read_bounds: Callable[[], RowGroupBounds | None],
        read_groups: Callable[[Sequence[int]], Sequence[Integers]],
    ) -> tuple[Positions, Int64s] | None:
        """Return positions and keys of the rows with the searched keys (ascending; None: any), ascending.

        None if the file has no bounds. Files that are not cached yet are read.
        """
        with self._lock:
            known = self._files.get(path)
            if known is not None:
                self._files.move_to_end(path)
        if known is None:
            bounds = read_bounds()
            if bounds is None:
                return None
            known = FileKeys(bounds=bounds)
            self._keep(path, known)
        missing = known.missing(searched)
        if missing:
            read = dict(zip(missing, read_groups(missing), strict=True))
            known = replace(known, groups={**known.groups, **read})
            self._keep(path, known)
        return known.places(searched)

    def _keep(self, path: str, keys: FileKeys) -> None:
        """Cache keys; if two threads read different groups of a file, the later keys are kept, the others reread."""
        with self._lock:
            before = self._files.pop(path, None)
            self._bytes += keys.nbytes - (0 if before is None else before.nbytes)
            self._files[path] = keys
            while self._bytes > self._bytes_max:
                _, oldest = self._files.popitem(last=False)
                self._bytes -= oldest.nbytes


def _places(searched: Integers, values: Integers) -> Positions:
    """Return the positions in ``values`` of all searched values; both are sorted."""
    if not len(values) or not len(searched):
        return np.zeros(0, dtype=np.int64)
    if len(values) <= len(searched):
        at = np.minimum(np.searchsorted(searched, values), len(searched) - 1)
        return np.flatnonzero(searched[at] == values)
    first = np.searchsorted(values, searched)
    first = first[values[np.minimum(first, len(values) - 1)] == searched]
    after = np.minimum(first + 1, len(values) - 1)
    if not ((values[after] == values[first]) & (after > first)).any():
        return first
    # Keys repeat, in a table that counts equal rows.
    counts = np.searchsorted(values, values[first], side="right") - first
    return np.repeat(first + counts - np.cumsum(counts), counts) + np.arange(counts.sum())
