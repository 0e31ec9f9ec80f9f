"""Rows as bytes: equal if and only if the rows are equal, and sorted as the columns are."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage_lib.schema.encoding.canonical_rows import canonical_rows
from tests.support.every_type import _values

NESTED = pa.struct(
    [
        ("tags", pa.list_(pa.string())),
        ("by", pa.map_(pa.string(), pa.float64())),
        ("at", pa.struct([("x", pa.int32())])),
    ]
)


def keys(values: list[Any], arrow: pa.DataType) -> list[bytes]:
    return canonical_rows([pa.array(values, arrow)]).to_pylist()


@pytest.mark.parametrize(
    ("arrow", "ascending"),
    [
        (pa.bool_(), [None, False, True]),
        (pa.int8(), [None, -128, -1, 0, 127]),
        (pa.int16(), [None, -32768, 0, 32767]),
        (pa.int32(), [None, -(2**31), -1, 0, 2**31 - 1]),
        (pa.int64(), [None, -(2**63), -1, 0, 2**63 - 1]),
        (pa.float32(), [None, -math.inf, -1.5, 0.0, 1.5, math.inf, math.nan]),
        (pa.float64(), [None, -math.inf, -1e300, -1e-300, 0.0, 1e-300, 2.5, math.inf, math.nan]),
        (
            pa.decimal128(38, 2),
            [None, Decimal("-99999999999999999999.99"), Decimal("-0.01"), Decimal(0), Decimal("7.5")],
        ),
        (pa.string(), [None, "", "\0", "\0a", "a", "a\0", "a\0b", "ab", "b", "é", "☃"]),
        (pa.binary(), [None, b"", b"\0", b"\0\xff", b"\x01", b"\xff", b"\xff\xff"]),
        (pa.list_(pa.int32()), [None, [], [None], [None, 1], [1], [1, None], [1, 2], [2]]),
        (pa.struct([("a", pa.string()), ("b", pa.int8())]), [None, {"a": None, "b": 1}, {"a": "x", "b": None}]),
    ],
    ids=str,
)
def test_bytes_sort_as_values_do_nulls_first(arrow: pa.DataType, ascending: list[Any]) -> None:
    found = keys(ascending, arrow)
    assert found == sorted(found)
    assert len(set(found)) == len(ascending)


def test_not_a_number_equals_itself_and_both_zeros_are_one() -> None:
    other_nan = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))[0]
    array = pa.array(np.array([math.nan, other_nan, 0.0, -0.0]))
    first, second, zero, minus_zero = canonical_rows([array]).to_pylist()
    assert first == second
    assert zero == minus_zero
    assert len({*keys([[0.0], [-0.0]], pa.list_(pa.float32()))}) == 1


def test_maps_are_equal_whatever_the_order_of_their_entries() -> None:
    arrow = pa.map_(pa.string(), pa.int64())
    one, same, other, empty, null = keys(
        [[("a", 1), ("b", None)], [("b", None), ("a", 1)], [("a", 1), ("b", 0)], [], None], arrow
    )
    assert one == same
    assert len({one, other, empty, null}) == 4


def test_neighbouring_columns_do_not_run_into_one_another() -> None:
    left, right = pa.array(["a", "ab", "", None]), pa.array(["bc", "c", "abc", "abc"])
    assert len(set(canonical_rows([left, right]).to_pylist())) == 4
    lists = pa.array([[["a"], []], [["a"]], [[], ["a"]], [["a", ""]]], pa.list_(pa.list_(pa.string())))
    assert len(set(canonical_rows([lists]).to_pylist())) == 4


def test_a_slice_has_the_bytes_of_its_rows() -> None:
    values = [
        {"tags": ["x", None], "by": [("k", 1.0)], "at": {"x": 1}},
        None,
        {"tags": None, "by": None, "at": None},
        {"tags": [], "by": [("b", None), ("a", 2.0)], "at": {"x": None}},
    ]
    array = pa.array(values, NESTED)
    whole = canonical_rows([array]).to_pylist()
    assert canonical_rows([array.slice(1, 2)]).to_pylist() == whole[1:3]
    assert canonical_rows([array.slice(2)]).to_pylist() == whole[2:]
    assert canonical_rows([array.slice(4)]).to_pylist() == []
    decimals = pa.array([Decimal("1.00"), None, Decimal("-3.50")], pa.decimal128(10, 2))
    assert canonical_rows([decimals.slice(1)]).to_pylist() == canonical_rows([decimals]).to_pylist()[1:]


@given(st.data())
def test_bytes_are_equal_exactly_where_values_are(data: st.DataObject) -> None:
    arrow = data.draw(st.sampled_from([pa.int64(), pa.float64(), pa.string(), pa.binary(), pa.decimal128(10, 2)]))
    values = data.draw(st.lists(st.none() | _values(arrow), min_size=2, max_size=8))
    array = pa.array(values, arrow)
    found = canonical_rows([array]).to_pylist()
    given_values = ["NaN" if isinstance(each, float) and math.isnan(each) else each for each in array.to_pylist()]
    for place, value in enumerate(given_values):
        assert [key == found[place] for key in found] == [other == value for other in given_values]
