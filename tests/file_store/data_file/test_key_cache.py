"""Keys read by lookups are read once, are found as by a plain search, and stay within their memory limit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from storage_lib.file_store.data_file.key_cache import KeyCache
from storage_lib.format.file_format import RowGroupBounds

Integers = npt.NDArray[np.integer]


class File:
    """Keys in row groups; records which groups were read."""

    def __init__(self, keys: Sequence[int], group_rows: int) -> None:
        self.keys = np.array(keys, dtype=np.int32)
        self.groups = [self.keys[start : start + group_rows] for start in range(0, len(self.keys), group_rows)]
        self.bounds_read = 0
        self.groups_read: list[int] = []

    def positions(self, cache: KeyCache, path: str, searched: Sequence[int]) -> list[int] | None:
        found = cache.places(
            path, np.array(searched, dtype=np.int64), read_bounds=self._bounds, read_groups=self._values
        )
        return None if found is None else found[0].tolist()

    def _bounds(self) -> RowGroupBounds | None:
        self.bounds_read += 1
        if not self.groups:
            return None
        return RowGroupBounds(
            lows=np.array([group[0] for group in self.groups], dtype=np.int64),
            highs=np.array([group[-1] for group in self.groups], dtype=np.int64),
            ends=np.cumsum([len(group) for group in self.groups]),
        )

    def _values(self, groups: Sequence[int]) -> list[Integers]:
        self.groups_read += groups
        return [self.groups[group] for group in groups]


def test_keys_are_found_as_by_a_look_at_every_row_and_no_group_is_read_twice() -> None:
    random = np.random.default_rng(5)
    cache = KeyCache(1 << 20)
    files = {
        f"file {number}": File(np.sort(random.integers(-500, 500, 300)).tolist(), int(random.integers(1, 80)))
        for number in range(4)
    }
    for _ in range(100):
        path, file = list(files.items())[int(random.integers(4))]
        searched = np.unique(random.integers(-600, 600, int(random.choice([0, 1, 5, 60, 400])))).tolist()

        assert file.positions(cache, path, searched) == np.flatnonzero(np.isin(file.keys, searched)).tolist()

    assert all(file.bounds_read == 1 for file in files.values())
    assert all(len(set(file.groups_read)) == len(file.groups_read) for file in files.values())


def test_only_groups_that_may_hold_a_key_are_read() -> None:
    file = File(range(0, 100, 2), 10)
    cache = KeyCache(1 << 20)

    assert file.positions(cache, "f", [1, 43]) == []
    assert file.groups_read == [0, 2]
    assert file.positions(cache, "f", [44, 98]) == [22, 49]
    assert file.groups_read == [0, 2, 4]


def test_a_file_whose_footer_does_not_tell_can_not_be_searched() -> None:
    assert File([], 10).positions(KeyCache(1 << 20), "f", [1]) is None


@pytest.mark.parametrize(("bytes_max", "times_read"), [(1 << 20, 1), (10_000, 2), (1, 3)])
def test_the_file_that_was_not_used_for_longest_makes_room(bytes_max: int, times_read: int) -> None:
    cache = KeyCache(bytes_max)
    files = [File(range(1000), 100) for _ in range(5)]
    for _ in range(2):
        for number, file in enumerate(files):
            assert file.positions(cache, str(number), range(1000)) == list(range(1000))

    # Each takes 4 kB plus overhead: 10,000 bytes hold two thirds of the five.
    assert files[4].positions(cache, "4", [7]) == [7]
    assert files[0].bounds_read == min(times_read, 2)
    assert files[4].bounds_read == times_read
