from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage_lib.errors import CorruptFileError, InvalidInputError
from storage_lib.schema.encoding.binary_row import decode_row, encode_row
from storage_lib.schema.filter.column_stats import ColumnStats, SimpleStats, collect_stats, decode_stats, encode_stats
from tests.support.schemas import field_of, schema_of

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def stats_of(spelled: str, values: list[object]) -> ColumnStats:
    """Return the column's statistics after encoding and decoding."""
    field = field_of(spelled)
    rows = pa.record_batch([pa.array(values, field.type.arrow)], names=[field.name])
    encoded = encode_stats(collect_stats(rows, [field]), [field])
    return decode_stats(encoded, [field], len(values))[field.name]


@pytest.mark.parametrize(
    ("spelled", "values", "low", "high"),
    [
        ("BIGINT", [3, None, -5], -5, 3),
        ("STRING", ["b", "a", None], "a", "b"),
        ("BYTES", [b"b", b"a"], b"a", b"b"),
        ("BOOLEAN", [True, False], False, True),
        ("DECIMAL(30, 4)", [Decimal("1.5"), Decimal(-2)], Decimal("-2.0000"), Decimal("1.5000")),
        ("DATE", [date(2024, 5, 14), date(2020, 1, 1)], date(2020, 1, 1), date(2024, 5, 14)),
        (
            "TIMESTAMP_LTZ(6)",
            [datetime(2024, 5, 14, tzinfo=UTC)],
            datetime(2024, 5, 14, tzinfo=UTC),
            datetime(2024, 5, 14, tzinfo=UTC),
        ),
        ("DOUBLE", [1.5, -2.5], -2.5, 1.5),
        ("INT", [None, None], None, None),
        ("INT", [], None, None),
    ],
)
def test_bounds_and_nulls_come_back(spelled: str, values: list[object], low: object, high: object) -> None:
    stats = stats_of(spelled, values)

    assert (stats.min, stats.max) == (low, high)
    assert stats.null_count == values.count(None)
    assert stats.row_count == len(values)


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        ("0123456789abcdef", "0123456789abcdef", "0123456789abcdef"),
        ("0123456789abcdefg", "0123456789abcdef", "0123456789abcdeg"),
        ("0123456789abcde\U0010ffffx", "0123456789abcde\U0010ffff", "0123456789abcdf"),
        ("\U0010ffff" * 17, None, None),
        ("x" + "\U0010ffff" * 16, "x" + "\U0010ffff" * 15, "y"),
        ("0123456789abcde\ud7ffx", "0123456789abcde\ud7ff", "0123456789abcde\ue000"),
        ("é" * 20, "é" * 16, "é" * 15 + "ê"),
    ],
)
def test_a_long_text_is_cut_below_and_raised_above(value: str, low: str | None, high: str | None) -> None:
    stats = stats_of("STRING", [value])

    assert (stats.min, stats.max) == (low, high)


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        (bytes(20), bytes(16), bytes(15) + b"\1"),
        (b"\1" + b"\xff" * 19, b"\1" + b"\xff" * 15, b"\2"),
        (b"\xff" * 17, None, None),
        (b"\xff" * 16, b"\xff" * 16, b"\xff" * 16),
    ],
)
def test_long_bytes_are_cut_below_and_raised_above(value: bytes, low: bytes | None, high: bytes | None) -> None:
    stats = stats_of("BYTES", [value])

    assert (stats.min, stats.max) == (low, high)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.none() | TEXT, min_size=1))
def test_no_text_is_outside_of_its_bounds(values: list[str | None]) -> None:
    stats = stats_of("STRING", list(values))

    for value in values:
        if value is not None:
            assert stats.min is None or stats.min.encode() <= value.encode()
            assert stats.max is None or value.encode() <= stats.max.encode()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.none() | st.binary(max_size=30) | st.just(b"\xff" * 20), min_size=1))
def test_no_bytes_are_outside_of_their_bounds(values: list[bytes | None]) -> None:
    stats = stats_of("BYTES", list(values))

    for value in values:
        if value is not None:
            assert stats.min is None or stats.min <= value
            assert stats.max is None or value <= stats.max


def test_with_not_a_number_there_are_no_bounds() -> None:
    stats = stats_of("DOUBLE", [1.0, math.nan, None])

    assert (stats.min, stats.max, stats.null_count) == (None, None, 1)


def test_bounds_at_zero_hold_both_zeros() -> None:
    stats = stats_of("DOUBLE", [0.0])

    assert math.copysign(1, stats.min) == -1
    assert math.copysign(1, stats.max) == 1


def test_nanoseconds_are_inside_their_bounds() -> None:
    field = field_of("TIMESTAMP(9)")
    column = pa.array([1_715_648_523_456_789_123], pa.int64()).view(pa.timestamp("ns"))
    rows = pa.record_batch([column], names=["c"])

    stats = decode_stats(encode_stats(collect_stats(rows, [field]), [field]), [field], 1)["c"]

    below = datetime(2024, 5, 14, 1, 2, 3, 456_789)  # noqa: DTZ001
    assert stats.min in (below, None)
    assert stats.max in (below.replace(microsecond=456_790), None)


def test_dates_that_python_cannot_hold_have_no_bounds() -> None:
    field = field_of("DATE")
    column = pa.array([10_000_000], pa.int32()).view(pa.date32())

    (stats,) = collect_stats(pa.record_batch([column], names=["c"]), [field])

    assert (stats.min, stats.max) == (None, None)


def test_the_bytes_are_rows_over_the_covered_columns() -> None:
    schema = schema_of("id BIGINT, name STRING", key="id")
    rows = pa.record_batch([pa.array([4, 1]), pa.array([None, "x"])], schema=schema.arrow_schema)

    encoded = encode_stats(collect_stats(rows, schema.fields), schema.fields)

    types = [field.type for field in schema.fields]
    assert encoded == SimpleStats(
        min_values=encode_row([1, "x"], types), max_values=encode_row([4, "x"], types), null_counts=(0, 1)
    )


def test_key_bounds_can_be_kept_whole() -> None:
    field = field_of("STRING")
    stats = ColumnStats(min="a" * 40, max="b" * 40, null_count=0, row_count=2)

    encoded = encode_stats([stats], [field], truncate=None)

    assert decode_row(encoded.max_values, [field.type]) == ("b" * 40,)


def test_writers_that_leave_null_counts_out_are_understood() -> None:
    field = field_of("INT")
    bound = encode_row([5], [field.type])

    decoded = decode_stats(SimpleStats(min_values=bound, max_values=bound, null_counts=()), [field], 3)

    assert decoded == {"c": ColumnStats(min=5, max=5, null_count=None, row_count=3)}


def test_statistics_of_other_columns_are_corrupt() -> None:
    empty = SimpleStats(min_values=bytes(12), max_values=bytes(12), null_counts=())

    assert decode_stats(empty, [], 3) == {}
    with pytest.raises(CorruptFileError):
        decode_stats(empty, [field_of("INT")], 3)


def test_a_bound_of_another_type_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="INT"):
        encode_stats([ColumnStats(min="1", max="2", null_count=0, row_count=2)], [field_of("INT")])
