"""Codes sort as keys do, and report whether equal codes imply equal keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage_lib.file_store.merge_tree.key_codes import order_codes
from storage_lib.file_store.merge_tree.merge_keys import FrameKeys

TEXT = st.text("ab\0é☃z", max_size=4) | st.sampled_from(["customer-0001", "customer-0002", "customer-00021", "c" * 70])
KEYS = {
    "strings": st.tuples(TEXT),
    "bytes": st.tuples(st.binary(max_size=10)),
    "integers": st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-5, 5)),
    "mixed": st.tuples(st.integers(0, 3), TEXT, st.integers(-1, 1)),
}


@pytest.mark.parametrize("name", KEYS)
@given(data=st.data())
def test_codes_never_contradict_the_order_of_keys(name: str, data: st.DataObject) -> None:
    keys = data.draw(st.lists(KEYS[name], min_size=1, max_size=30))
    bits = data.draw(st.integers(1, 63))

    codes, is_exact = order_codes(_frame(keys), bits)

    assert codes.min() >= 0
    assert int(codes.max()) < 2**bits
    for (key, code), (other, other_code) in zip(
        zip(keys, codes, strict=True), list(zip(keys, codes, strict=True))[1:], strict=False
    ):
        if code < other_code:
            assert _bytes(key) < _bytes(other)
        if is_exact and code == other_code:
            assert key == other


@pytest.mark.parametrize("name", KEYS)
@given(data=st.data())
def test_the_newest_row_of_each_key_is_found_whatever_the_codes_can_tell(name: str, data: st.DataObject) -> None:
    keys = data.draw(st.lists(KEYS[name], min_size=1, max_size=30))
    newest = {_bytes(key): row for row, key in enumerate(keys)}

    found = FrameKeys(_frame(keys)).newest(ordered=True)

    assert found.tolist() == [newest[key] for key in sorted(newest)]


def test_long_keys_that_differ_late_are_told_apart_by_their_own_order() -> None:
    # Given: 2,000 keys of which most share the first 20 varying letters, so that no code can distinguish all of them.
    letters = "".join(chr(97 + index) for index in range(26))
    keys = [(letters[index % 2 :] + letters + f"{index % 500:05}",) for index in range(2_000)]

    codes, is_exact = order_codes(_frame(keys), 40)
    found = FrameKeys(_frame(keys)).newest(ordered=True)

    assert not is_exact
    assert len(np.unique(codes)) < 500
    assert [keys[row] for row in found] == sorted(set(keys))
    assert set(found.tolist()) == set(range(1_500, 2_000))


def _frame(keys: list[tuple[Any, ...]]) -> pl.DataFrame:
    types = {int: pl.Int64, str: pl.String, bytes: pl.Binary}
    columns = {f"key_{index}": [key[index] for key in keys] for index in range(len(keys[0]))}
    return pl.DataFrame({name: pl.Series(values, dtype=types[type(values[0])]) for name, values in columns.items()})


def _bytes(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(part.encode() if isinstance(part, str) else part for part in key)


@pytest.mark.parametrize("bits", [40, 63])
def test_integers_too_far_apart_for_a_code_are_left_to_their_own_order(bits: int) -> None:
    codes, is_exact = order_codes(_frame([(0, 1), (2**63 - 1, 2)]), bits)

    assert codes.tolist() == [0, 0]
    assert not is_exact
