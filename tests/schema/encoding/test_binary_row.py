"""Rows in metadata, bit for bit, encoded one at a time and by columns."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage_lib.errors import CorruptFileError, InvalidInputError
from storage_lib.schema.encoding.binary_row import EMPTY_ROW, decode_bound, decode_row, encode_row, encode_rows
from storage_lib.schema.types.data_types import DataType, parse_data_type
from tests.support.extras import needed
from tests.support.golden_rows import (
    GOLDEN_ROWS,
    SIXTY_FIELDS,
    SIXTY_FIELDS_ROW_LENGTH,
    SIXTY_FIELDS_ROW_START,
    GoldenRow,
)

INT = parse_data_type("INT")


def _decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    largest = 10**digits - 1
    powers = st.integers(0, 126).map(lambda bits: 1 << bits) | st.integers(0, 126).map(lambda bits: -(1 << bits))
    unscaled = st.integers(-largest, largest) | powers.filter(lambda number: abs(number) <= largest)
    return unscaled.map(lambda number: Decimal(f"{number}E-{scale}"))


MILLIS = st.integers(0, 86_399_999)
VALUES: dict[str, st.SearchStrategy[object]] = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-128, 127),
    "SMALLINT": st.integers(-(2**15), 2**15 - 1),
    "INT": st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "FLOAT": st.floats(width=32, allow_nan=False),
    "DOUBLE": st.floats(allow_nan=False),
    "DATE": st.dates(),
    "TIME(3)": MILLIS.map(
        lambda ms: time(ms // 3_600_000, ms // 60_000 % 60, ms // 1000 % 60, ms % 1000 * 1000),
    ),
    "CHAR(9)": st.text(max_size=9),
    "STRING": st.text("ab☃", max_size=20) | st.just("long " * 60),
    "BYTES": st.binary(max_size=20),
    "DECIMAL(10, 2)": _decimals(10, 2),
    "DECIMAL(18, 0)": _decimals(18, 0),
    "DECIMAL(19, 0)": _decimals(19, 0),
    "DECIMAL(38, 10)": _decimals(38, 10),
    "TIMESTAMP(3)": st.datetimes().map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000)),
    "TIMESTAMP(6)": st.datetimes(),
    "TIMESTAMP_LTZ(6)": st.datetimes(timezones=st.just(UTC)),
}


@st.composite
def _tables(draw: st.DrawFn) -> tuple[list[DataType], list[tuple[object, ...]]]:
    names = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=6))
    rows = draw(st.lists(st.tuples(*(VALUES[name] | st.none() for name in names)), max_size=40))
    return [parse_data_type(name) for name in names], rows


def _columns(rows: Sequence[Sequence[object]], types: Sequence[DataType]) -> list[pa.Array]:
    return [pa.array([row[index] for row in rows], type_.arrow) for index, type_ in enumerate(types)]


@pytest.mark.parametrize("golden", GOLDEN_ROWS.values(), ids=GOLDEN_ROWS)
def test_a_row_has_the_bytes_that_other_engines_write(golden: GoldenRow) -> None:
    assert encode_row(golden.values, golden.types).hex() == golden.row.hex()


@pytest.mark.parametrize("golden", GOLDEN_ROWS.values(), ids=GOLDEN_ROWS)
def test_a_row_made_from_columns_has_the_bytes_that_other_engines_write(golden: GoldenRow) -> None:
    assert encode_rows(golden.columns, golden.types).to_pylist() == [golden.row]


@pytest.mark.parametrize("golden", GOLDEN_ROWS.values(), ids=GOLDEN_ROWS)
def test_the_values_come_back_from_the_bytes(golden: GoldenRow) -> None:
    assert decode_row(golden.row, golden.types) == golden.values


def test_null_bits_of_sixty_fields_take_two_words() -> None:
    row = encode_row(SIXTY_FIELDS, [INT] * 60)
    assert row.startswith(SIXTY_FIELDS_ROW_START)
    assert len(row) == SIXTY_FIELDS_ROW_LENGTH
    assert decode_row(row, [INT] * 60) == SIXTY_FIELDS


def test_a_row_without_fields_is_twelve_zeros() -> None:
    assert encode_row([], []) == EMPTY_ROW == bytes(12)
    assert decode_row(EMPTY_ROW, []) == ()


@given(_tables())
@settings(max_examples=120, derandomize=True, deadline=None)
def test_columns_and_single_rows_encode_alike_and_decode_to_what_they_were(
    table: tuple[list[DataType], list[tuple[object, ...]]],
) -> None:
    types, rows = table
    encoded = encode_rows(_columns(rows, types), types).to_pylist()
    assert encoded == [encode_row(row, types) for row in rows]
    assert [decode_row(row, types) for row in encoded] == rows


@given(_tables(), st.integers(0, 5), st.integers(0, 5))
@settings(max_examples=60, derandomize=True, deadline=None)
def test_a_slice_of_columns_encodes_as_those_rows_alone(
    table: tuple[list[DataType], list[tuple[object, ...]]], skipped: int, left_out: int
) -> None:
    types, rows = table
    end = max(skipped, len(rows) - left_out)
    slices = [column.slice(skipped, end - skipped) for column in _columns(rows, types)]
    assert encode_rows(slices, types).to_pylist() == [encode_row(row, types) for row in rows[skipped:end]]


@pytest.mark.parametrize("type_", ["INT", "STRING", "DECIMAL(30, 2)", "TIMESTAMP(6)", "BOOLEAN"])
def test_what_lies_in_memory_under_a_null_does_not_reach_the_row(type_: str) -> None:
    data_type = parse_data_type(type_)
    some = {"INT": 7, "STRING": "a long string", "DECIMAL(30, 2)": Decimal(5), "BOOLEAN": True}.get(type_)
    values = pa.array([datetime(2024, 1, 1, microsecond=7) if some is None else some] * 2, data_type.arrow)  # noqa: DTZ001
    first_is_null = pa.py_buffer(b"\x02")
    column = pa.Array.from_buffers(data_type.arrow, 2, [first_is_null, *values.buffers()[1:]])
    assert encode_rows([column], [data_type])[0].as_py() == encode_row([None], [data_type])


def test_strings_of_very_different_lengths_encode_alike_from_columns() -> None:
    string = parse_data_type("STRING")
    texts = ["x" * (number * number % 997) for number in range(500)] + ["y" * 100_000]
    assert encode_rows([pa.array(texts)], [string]).to_pylist() == [encode_row([text], [string]) for text in texts]


def test_nanoseconds_are_kept_from_columns_and_rounded_outwards_in_bounds() -> None:
    nano = parse_data_type("TIMESTAMP(9)")
    row = encode_rows([pa.array([1_001], pa.timestamp("ns"))], [nano])[0].as_py()
    assert decode_row(row, [nano]) == (datetime(1970, 1, 1, microsecond=1),)  # noqa: DTZ001
    assert decode_bound(row, [nano], upper=False) == (datetime(1970, 1, 1, microsecond=1),)  # noqa: DTZ001
    assert decode_bound(row, [nano], upper=True) == (datetime(1970, 1, 1, microsecond=2),)  # noqa: DTZ001


def test_nanoseconds_are_kept_from_single_values_that_have_them() -> None:
    needed("pandas")  # Arrow's single values of nanoseconds are pandas'
    nano = parse_data_type("TIMESTAMP(9)")
    column = pa.array([1_715_648_523_456_789_123, -1], pa.timestamp("ns"))
    rows = encode_rows([column], [nano]).to_pylist()
    assert [encode_row([value.as_py()], [nano]) for value in column] == rows


def test_a_date_beyond_python_is_refused_in_a_row_and_unknown_in_a_bound() -> None:
    date_type = parse_data_type("DATE")
    row = encode_row([date(2024, 1, 1)], [date_type])[:12] + struct.pack("<q", 10_000_000)
    with pytest.raises(InvalidInputError, match="DATE is outside of the years 1 to 9999"):
        decode_row(row, [date_type])
    assert decode_bound(row, [date_type], upper=True) == (None,)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("INT", "7"),
        ("INT", 2**31),
        ("INT", True),
        ("INT", 1.5),
        ("BOOLEAN", 1),
        ("STRING", 7),
        ("BYTES", "text"),
        ("DATE", datetime(2024, 1, 1)),  # noqa: DTZ001
        ("DATE", "2024-01-01"),
        ("TIMESTAMP(6)", date(2024, 1, 1)),
        ("TIMESTAMP(6)", datetime(2024, 1, 1, tzinfo=UTC)),
        ("TIMESTAMP_LTZ(6)", datetime(2024, 1, 1)),  # noqa: DTZ001
        ("DECIMAL(4, 2)", Decimal("1.234")),
        ("DECIMAL(4, 2)", Decimal(100)),
        ("DECIMAL(4, 2)", Decimal("NaN")),
        ("DECIMAL(4, 2)", 1.5),
    ],
)
def test_a_value_of_another_type_is_refused_by_name(type_: str, value: object) -> None:
    data_type = parse_data_type(type_)
    with pytest.raises(InvalidInputError) as refused:
        encode_row([value], [data_type])
    assert str(data_type) in str(refused.value)
    assert repr(value) in str(refused.value)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        bytes(12),
        bytes.fromhex("000000020000000000000000"),
        bytes.fromhex("0000000100000000000000000100"),
        bytes.fromhex("000000010000000000000000080000001000000031"),
    ],
    ids=["nothing", "no fields", "other arity", "cut slot", "cut string"],
)
def test_bytes_that_are_no_such_row_are_reported_as_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        decode_row(data, [parse_data_type("STRING")])
