"""Columns of exactly the table's types skip the conversion, with identical results."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage_lib import InvalidInputError
from storage_lib.schema.table_schema import new_table_schema
from storage_lib.schema.types.data_types import parse_data_type
from storage_lib.schema.types.type_spelling import parse_type
from storage_lib.table.input import input_rows as input_rows_module
from storage_lib.table.input.input_arrays import conformed, fits_exactly, misfit
from storage_lib.table.input.input_rows import InputRows

INTEGERS = st.integers(-3, 3)
TEXTS = st.sampled_from(["", "a", "abc", "abcdef"])
DAYS = st.sampled_from([0, 19_000, 2**31 - 1])
GIVEN: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int32": (pa.int32(), INTEGERS),
    "int64": (pa.int64(), INTEGERS),
    "string": (pa.string(), TEXTS),
    "large_string": (pa.large_string(), TEXTS),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), TEXTS),
    "binary": (pa.binary(), TEXTS.map(str.encode)),
    "date32": (pa.date32(), DAYS),
    "decimal": (pa.decimal128(4, 1), INTEGERS),
    "list": (pa.list_(pa.int32()), st.lists(st.none() | INTEGERS, max_size=2)),
    "null": (pa.null(), st.none()),
}
WANTED = {
    "int32": ["INT", "INT NOT NULL", "BIGINT"],
    "int64": ["BIGINT", "INT", "BIGINT NOT NULL", "DECIMAL(20, 0)"],
    "string": ["STRING", "STRING NOT NULL", "VARCHAR(3)", "CHAR(3)"],
    "large_string": ["STRING", "VARCHAR(3)"],
    "dictionary": ["STRING", "CHAR(3)"],
    "binary": ["BYTES", "VARBINARY(3)", "BINARY(3)"],
    "date32": ["DATE", "DATE NOT NULL"],
    "decimal": ["DECIMAL(4, 1)", "DECIMAL(3, 1)", "DECIMAL(9, 4)"],
    "list": ["ARRAY<INT>", "ARRAY<INT NOT NULL>", "ARRAY<BIGINT>"],
    "null": ["INT", "STRING"],
}
PAIRS = [(given_as, wanted) for given_as, spellings in WANTED.items() for wanted in spellings]


def array_of(given_as: str, values: list[Any]) -> pa.Array:
    type_ = GIVEN[given_as][0]
    if pa.types.is_date32(type_):
        return pa.array(values, pa.int32()).cast(type_)
    if isinstance(type_, pa.DictionaryType):
        return pa.array(values, type_.value_type).dictionary_encode()
    return pa.array(values, type_)


@st.composite
def columns(draw: st.DrawFn) -> list[tuple[str, str]]:
    return draw(st.lists(st.sampled_from(PAIRS), min_size=1, max_size=4))


@st.composite
def batches(draw: st.DrawFn, of: list[tuple[str, str]]) -> pa.RecordBatch:
    count = draw(st.integers(1, 3))
    arrays = {}
    for index, (given_as, wanted) in enumerate(of):
        # Types may change between batches: the columns accepted last must not stand for the next ones.
        also = draw(st.sampled_from([given_as, *(name for name in GIVEN if can_be(name, wanted))]))
        values = st.lists(st.none() | GIVEN[also][1], min_size=count, max_size=count)
        arrays[f"c{index}"] = array_of(also, draw(values))
    order = draw(st.permutations(list(arrays)))
    return pa.RecordBatch.from_arrays([arrays[name] for name in order], names=order)


def can_be(given_as: str, wanted: str) -> bool:
    return misfit(GIVEN[given_as][0], parse_type(wanted), "c") is None


def outcome(rows: InputRows, batch: pa.RecordBatch) -> object:
    try:
        conformed_rows, kinds = rows.conform(batch)
    except InvalidInputError as error:
        return str(error)
    conformed_rows.validate(full=True)
    return conformed_rows.schema, conformed_rows.to_pydict(), kinds.to_pylist()


@given(data=st.data())
def test_rows_and_refusals_are_those_of_columns_that_are_all_conformed(data: st.DataObject) -> None:
    of = data.draw(columns())
    schema = new_table_schema(
        [(f"c{index}", wanted) for index, (_, wanted) in enumerate(of)],
        options={"bucket": "-1", "write-mode": "append-only", "fields.c0.default-value": "7"}
        if of[0][1] == "INT"
        else {"bucket": "-1", "write-mode": "append-only"},
        time_millis=0,
    )
    checked = InputRows("shop.orders", schema, "_row_kind")
    given_batches = data.draw(st.lists(batches(of), min_size=1, max_size=3))

    found = [outcome(checked, batch) for batch in given_batches]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(input_rows_module, "fits_exactly", lambda given_type, wanted: False)
        expected = [outcome(InputRows("shop.orders", schema, "_row_kind"), batch) for batch in given_batches]
    assert found == expected


@given(data=st.data())
def test_an_array_that_fits_exactly_comes_out_as_it_is(data: st.DataObject) -> None:
    given_as, spelling = data.draw(st.sampled_from(PAIRS))
    type_, values = GIVEN[given_as]
    wanted = parse_type(spelling)
    array = array_of(given_as, data.draw(st.lists(st.none() | values, max_size=4)))
    if fits_exactly(type_, wanted):
        assert conformed(array, wanted, "c") is array


@pytest.mark.parametrize(
    ("given_as", "wanted"),
    [
        ("string", "STRING"),
        ("string", "VARCHAR(3)"),
        ("binary", "BINARY(3)"),
        ("list", "ARRAY<INT NOT NULL>"),
        ("decimal", "DECIMAL(3, 1)"),
    ],
)
def test_types_whose_values_have_to_be_looked_at_never_fit_exactly(given_as: str, wanted: str) -> None:
    assert not fits_exactly(GIVEN[given_as][0], parse_type(wanted))


def test_scalars_of_the_same_type_fit_exactly() -> None:
    for spelling in ("INT", "BIGINT NOT NULL", "BYTES", "DATE", "DECIMAL(4, 1)", "TIMESTAMP(3)"):
        wanted = parse_data_type(spelling)
        assert fits_exactly(wanted.arrow, wanted)
