"""The index of the newest places of keys, compared with a dictionary."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from storage_lib.file_store.merge_tree.standing.newest_places import NewestPlaces, PlacesOfBuckets


def some_keys(rng: Random, *, span: int, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return up to ``count`` ascending distinct keys."""
    return np.array(sorted({rng.randrange(-span, span) for _ in range(count)}), dtype=np.int64)


def some_positions(rng: Random, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return positions of as many rows: a file is not sorted by hashes of its keys."""
    return np.array(rng.sample(range(count), count), dtype=np.int64)


def by_file(model: dict[int, tuple[str, int]], keys: list[int]) -> dict[str, list[int]]:
    """Return ascending positions by file of those keys that the model has."""
    found: dict[str, list[int]] = {}
    for key in keys:
        if key in model:
            name, position = model[key]
            found.setdefault(name, []).append(position)
    return {name: sorted(positions) for name, positions in found.items()}


def as_lists(found: dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]) -> dict[str, list[int]]:
    return {name: positions.tolist() for name, positions in found.items()}


@pytest.mark.parametrize("seed", range(40))
def test_the_newest_place_of_each_key_is_found_whatever_the_sizes_of_the_files(seed: int) -> None:
    rng = Random(seed)  # noqa: S311  chance, not cryptography
    span = rng.choice([5, 60, 3000])
    index, model = NewestPlaces(), dict[int, tuple[str, int]]()
    for number in range(rng.choice([1, 6, 40])):
        keys = some_keys(rng, span=span, count=rng.choice([0, 1, 4, 30, 400]))
        expected = by_file(model, keys.tolist())
        absent = [key for key in keys.tolist() if key not in model]

        positions = some_positions(rng, len(keys))
        former = index
        index, replaced, rest = index.replacing(f"f{number}", keys, positions)

        assert as_lists(replaced) == expected
        assert rest.tolist() == absent
        assert as_lists(former.find(keys)[0]) == expected  # the former index has not changed
        model |= {
            key: (f"f{number}", position) for key, position in zip(keys.tolist(), positions.tolist(), strict=True)
        }
        searched = some_keys(rng, span=span, count=rng.choice([1, 50, 900]))
        found, rest = index.find(searched)
        assert as_lists(found) == by_file(model, searched.tolist())
        assert rest.tolist() == [key for key in searched.tolist() if key not in model]
    assert index.names == tuple(f"f{each}" for each in range(len(index.names)))


def test_many_small_files_make_few_runs() -> None:
    index = NewestPlaces()
    for number in range(2000):
        index = index.with_file(f"f{number}", np.arange(number * 10, number * 10 + 10), np.arange(10))

    assert len(index.runs) <= 8
    assert sum(len(each.codes) for each in index.runs) == 20_000


def test_an_index_that_is_too_large_is_dropped_and_the_least_recently_used_goes_first() -> None:
    indexes = PlacesOfBuckets(40_000)
    small = NewestPlaces().with_file("f", np.arange(500), np.arange(500))
    for bucket in range(4):
        indexes.keep(b"", bucket, small)

    assert indexes.of(b"", 0) is small
    indexes.keep(b"", 4, small)

    assert [len(indexes.of(b"", bucket).names) for bucket in range(5)] == [1, 0, 1, 1, 1]
    indexes.keep(b"", 3, NewestPlaces().with_file("g", np.arange(700), np.arange(700)))
    assert indexes.of(b"", 3).names == ()
