"""Ranges of a key divide it without gaps and overlaps, and rows are hashed with their columns in place."""

from __future__ import annotations

from random import Random

import numpy as np
import polars as pl
import pytest

from storage_lib.verification.key_ranges import OUTSIDE, KeyRange, KeyRanges
from storage_lib.verification.row_hashes import row_hashes

TYPES = {"a": pl.Int64(), "b": pl.String()}


Key = tuple[int | None, str | None]


def place(key: Key) -> tuple[bool, int, bool, str]:
    """Return the place of a key in the order; null comes first."""
    return key[0] is not None, key[0] or 0, key[1] is not None, key[1] or ""


@pytest.mark.parametrize("seed", range(20))
def test_every_key_is_in_exactly_the_range_that_contains_it(seed: int) -> None:
    chance = Random(seed)  # noqa: S311  reproducible
    keys = [(chance.choice((None, *range(5))), chance.choice((None, "", "a", "b", "Z"))) for _ in range(200)]
    distinct = pl.DataFrame(keys, schema=TYPES, orient="row").unique().sort(["a", "b"], nulls_last=False)
    every = KeyRange().divided(distinct, chance.randrange(2, 12))
    chosen = sorted(chance.sample(range(len(every)), chance.randrange(1, len(every) + 1)))
    ranges = [every[number] for number in chosen]

    ids = KeyRanges(ranges, TYPES).ids(pl.DataFrame(keys, schema=TYPES, orient="row"))

    expected = [
        next(
            (
                id_
                for id_, each in enumerate(ranges)
                if (each.low is None or place(key) >= place(each.low))
                and (each.high is None or place(key) < place(each.high))
            ),
            OUTSIDE,
        )
        for key in keys
    ]
    assert ids.tolist() == expected
    assert len(every) > 1


def test_a_range_of_one_key_is_not_divided() -> None:
    one = pl.DataFrame({"a": [3]})

    assert KeyRange((1,), (9,)).divided(one, 8) == [KeyRange((1,), (9,))]
    assert KeyRange().divided(pl.DataFrame({"a": [3, 4]}), 8) == [KeyRange(None, (4,)), KeyRange((4,), None)]


def test_values_that_rows_or_columns_have_exchanged_change_the_sum() -> None:
    def total(rows: dict[str, list[int | None]]) -> int:
        return int(row_hashes(pl.DataFrame(rows), ["a", "b"]).sum(dtype=np.uint64))

    sums = {
        total({"a": [1, 2], "b": [3, 4]}),
        total({"a": [1, 2], "b": [4, 3]}),
        total({"a": [3, 2], "b": [1, 4]}),
        total({"a": [1, 2], "b": [3, None]}),
        total({"a": [1, 2], "b": [3, 0]}),
    }

    assert len(sums) == 5
    assert total({"a": [2, 1], "b": [4, 3]}) == total({"a": [1, 2], "b": [3, 4]})
