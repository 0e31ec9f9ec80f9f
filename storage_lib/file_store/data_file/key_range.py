"""Half-open range of keys, for a reader of part of a bucket."""

from __future__ import annotations

from dataclasses import dataclass

from storage_lib.file_store.data_file.comparable_key import ComparableKey


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRange:
    """Keys from ``low`` on and below ``high``; None is unbounded. Frozen and picklable.

    Bounds are comparable keys as those of files' metadata, or their first columns: (5,) is before (5, "a").
    """

    low: ComparableKey | None
    high: ComparableKey | None

    def overlaps(self, first: ComparableKey, last: ComparableKey) -> bool:
        """Return whether some key from ``first`` to ``last``, both included, can be in the range."""
        return (self.low is None or last >= self.low) and (self.high is None or first < self.high)

    def contains(self, first: ComparableKey, last: ComparableKey) -> bool:
        """Return whether all keys from ``first`` to ``last``, both included, are in the range."""
        return (self.low is None or first >= self.low) and (self.high is None or last < self.high)
