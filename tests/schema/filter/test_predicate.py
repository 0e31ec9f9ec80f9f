from __future__ import annotations

import math
import operator
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage_lib.errors import InvalidInputError
from storage_lib.schema.filter.column_reference import col
from storage_lib.schema.filter.column_stats import ColumnStats, collect_stats, decode_stats, encode_stats
from storage_lib.schema.filter.comparisons import (
    Equal,
    GreaterOrEqual,
    GreaterThan,
    In,
    IsNotNull,
    IsNull,
    LessOrEqual,
    LessThan,
    NotEqual,
    StartsWith,
)
from storage_lib.schema.filter.predicate import And, Not, Or, Predicate
from tests.support.schemas import schema_of

Row = Mapping[str, object]
SCHEMA = schema_of("n INT, s STRING, f DOUBLE, d DATE, b BOOLEAN")
COMPARISONS: dict[Callable[[str, object], Predicate], Callable[[Any, Any], bool]] = {
    Equal: operator.eq,
    NotEqual: operator.ne,
    LessThan: operator.lt,
    LessOrEqual: operator.le,
    GreaterThan: operator.gt,
    GreaterOrEqual: operator.ge,
}
VALUES: dict[str, st.SearchStrategy[object]] = {
    "n": st.integers(-3, 3),
    "s": st.sampled_from(["", "a", "ab", "abc", "b", "ab" * 10, "ab" * 10 + "c", "\U0010ffff" * 17]),
    "f": st.sampled_from([-1.5, -0.0, 0.0, 1.5, math.inf, math.nan, math.nan]),
    "d": st.dates(date(2024, 5, 13), date(2024, 5, 15)),
    "b": st.booleans(),
}


def truth(predicate: Predicate, row: Row) -> bool | None:  # noqa: PLR0911  one case each, as SQL defines it
    """Return SQL's answer for one row; None means unknown."""
    match predicate:
        case IsNull(column=column):
            return row[column] is None
        case IsNotNull(column=column):
            return row[column] is not None
        case In(column=column, values=values):
            return None if row[column] is None else any(ordered(row[column]) == ordered(value) for value in values)
        case StartsWith(column=column, prefix=prefix):
            value = row[column]
            return value.startswith(prefix) if isinstance(value, str) else None
        case And(left=left, right=right):
            answers = {truth(left, row), truth(right, row)}
            return False if False in answers else None if None in answers else True
        case Or(left=left, right=right):
            answers = {truth(left, row), truth(right, row)}
            return True if True in answers else None if None in answers else False
        case Not(child=child):
            answer = truth(child, row)
            return None if answer is None else not answer
    compare = COMPARISONS[type(predicate)]
    column, value = predicate.column, predicate.value  # type: ignore[attr-defined]  # a comparison
    return None if row[column] is None else compare(ordered(row[column]), ordered(value))


def ordered(value: object) -> object:
    """Return a value that compares as in Spark: NaN equals NaN and is greater than any number."""
    return (math.isnan(value), 0.0 if math.isnan(value) else value) if isinstance(value, float) else value


@st.composite
def leaves(draw: st.DrawFn) -> Predicate:
    column = draw(st.sampled_from(sorted(VALUES)))
    leaf: st.SearchStrategy[Predicate] = st.one_of(
        *(st.builds(kind, st.just(column), VALUES[column]) for kind in COMPARISONS),
        st.builds(In, st.just(column), st.lists(VALUES[column], max_size=3).map(tuple)),
        st.just(IsNull(column)),
        st.just(IsNotNull(column)),
        st.builds(StartsWith, st.just("s"), st.sampled_from(["", "a", "ab", "abab", "b", "ab" * 9, "\U0010ffff"])),
    )
    return draw(leaf)


PREDICATES = st.recursive(
    leaves(),
    lambda inner: st.builds(And, inner, inner) | st.builds(Or, inner, inner) | st.builds(Not, inner),
    max_leaves=6,
)
ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()}), min_size=1, max_size=8
)


def is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def batch_of(rows: Sequence[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA.arrow_schema)


@settings(max_examples=150, deadline=None)
@given(PREDICATES, ROWS)
def test_rows_pass_as_sql_says(predicate: Predicate, rows: list[Row]) -> None:
    expected = [truth(predicate, row) is True for row in rows]
    batch = batch_of(rows)

    assert predicate.mask(batch).to_pylist() == expected
    assert predicate.mask(pa.Table.from_batches([batch])).to_pylist() == expected


@settings(max_examples=150, deadline=None)
@given(PREDICATES, ROWS, st.booleans())
def test_statistics_never_hide_a_row_that_passes(
    predicate: Predicate,
    rows: list[Row],
    ignores_nan: bool,  # noqa: FBT001  drawn
) -> None:
    columns = ("f",) if ignores_nan else ()
    # Other writers compute the bounds of a column as if it had no NaN.
    bounded = [{**row, **{name: None for name in columns if is_nan(row[name])}} for row in rows]
    encoded = encode_stats(collect_stats(batch_of(bounded), SCHEMA.fields), SCHEMA.fields)
    nulls = tuple(batch_of(rows).column(field.name).null_count for field in SCHEMA.fields)
    encoded = replace(encoded, null_counts=nulls)
    stats = decode_stats(encoded, SCHEMA.fields, len(rows), covers_nan=not ignores_nan)

    if any(truth(predicate, row) is True for row in rows):
        assert predicate.may_match(stats)
    if any(truth(predicate, row) is not True for row in rows):
        assert Not(predicate).may_match(stats) or any(truth(predicate, row) is None for row in rows)


@settings(max_examples=100, deadline=None)
@given(PREDICATES, ROWS, st.sets(st.sampled_from(sorted(VALUES))))
def test_a_restriction_to_some_columns_lets_every_passing_row_pass(
    predicate: Predicate, rows: list[Row], columns: set[str]
) -> None:
    restricted = predicate.restrict_to(frozenset(columns))

    if restricted is not None:
        assert restricted.columns <= columns
        for row in rows:
            if truth(predicate, row) is True:
                assert truth(restricted, row) is True


def stats(**bounds: tuple[object, object]) -> dict[str, ColumnStats]:
    return {name: ColumnStats(min=low, max=high, null_count=0, row_count=10) for name, (low, high) in bounds.items()}


@pytest.mark.parametrize(
    ("predicate", "matches"),
    [
        (col("n") == 4, False),
        (col("n") == 5, True),
        (col("n") == 10, False),
        (col("n") != 7, True),
        (col("n") < 5, False),
        (col("n") <= 5, True),
        (col("n") > 9, False),
        (col("n") >= 9, True),
        (col("n").between(1, 4), False),
        (col("n").between(9, 20), True),
        (col("n").isin([1, 2, 12]), False),
        (col("n").isin([1, 6]), True),
        (col("n").isin([]), False),
        (col("n").is_null(), False),
        (col("n").is_not_null(), True),
        (~(col("n") >= 5), False),
        (~(col("n") == 5), True),
        ((col("n") == 6) & (col("s") == "z"), False),
        ((col("n") == 1) | (col("s") == "k"), True),
        (col("s").startswith("i"), False),
        (col("s").startswith("j"), True),
        (col("s").startswith("kz"), True),
        (col("s").startswith("l"), False),
        (col("unknown") == 1, True),
    ],
)
def test_a_file_is_left_out_when_its_bounds_rule_it_out(predicate: Predicate, matches: bool) -> None:  # noqa: FBT001
    assert predicate.may_match(stats(n=(5, 9), s=("jab", "kzz"))) is matches


def test_bounds_of_one_value_rule_out_what_differs_from_it() -> None:
    assert not (col("n") != 5).may_match(stats(n=(5, 5)))
    assert not (~(col("n") == 5)).may_match(stats(n=(5, 5)))


def test_a_column_of_nulls_matches_only_the_search_for_them() -> None:
    nulls = {"n": ColumnStats(min=None, max=None, null_count=10, row_count=10)}

    assert col("n").is_null().may_match(nulls)
    assert not (col("n") == 1).may_match(nulls)
    assert not (~(col("n") == 1)).may_match(nulls)
    assert not col("n").is_not_null().may_match(nulls)
    assert not col("n").isin([1]).may_match(nulls)


def test_unknown_bounds_and_counts_rule_nothing_out() -> None:
    unknown = {"n": ColumnStats(min=None, max=None, null_count=None, row_count=10)}

    for predicate in (col("n") == 1, col("n") < 1, col("n").is_null(), col("n").is_not_null(), ~(col("n") == 1)):
        assert predicate.may_match(unknown)
        assert predicate.may_match({})


def test_bounds_of_another_type_rule_nothing_out() -> None:
    assert (col("n") == 1).may_match(stats(n=("a", "b")))


def test_columns_are_those_that_are_spoken_of() -> None:
    predicate = (col("n") == 1) & (~col("s").startswith("a") | col("d").is_null())

    assert predicate.columns == {"n", "s", "d"}


def test_what_is_said_of_partitions_alone_is_found() -> None:
    partition = col("d") == date(2024, 5, 14)
    both = partition & (col("n") == 1)

    assert both.restrict_to(frozenset({"d"})) == partition
    assert (partition | (col("n") == 1)).restrict_to(frozenset({"d"})) is None
    assert (partition | (both & (col("s") == "a"))).restrict_to(frozenset({"d"})) == Or(partition, partition)
    assert (~both).restrict_to(frozenset({"d"})) is None


def test_predicates_are_values_that_travel() -> None:
    predicate = ~((col("n") == 1) & col("s").isin(["a", "b"])) | col("d").is_null()

    assert pickle.loads(pickle.dumps(predicate)) == predicate  # noqa: S301  our own bytes
    assert len({predicate, pickle.loads(pickle.dumps(predicate))}) == 1  # noqa: S301


@pytest.mark.parametrize(
    ("spelled", "given", "meant"),
    [
        ("INT", "5", 5),
        ("INT", 5, 5),
        ("INT", 5.0, 5),
        ("DOUBLE", 5, 5.0),
        ("DATE", "2024-05-14", date(2024, 5, 14)),
        ("TIMESTAMP(6)", "2024-05-14 01:02:03", datetime(2024, 5, 14, 1, 2, 3)),  # noqa: DTZ001
        ("TIMESTAMP_LTZ(6)", datetime(2024, 5, 14, tzinfo=UTC), datetime(2024, 5, 14, tzinfo=UTC)),
        ("DECIMAL(10, 2)", Decimal("1.5"), Decimal("1.50")),
        ("DECIMAL(10, 2)", 3, Decimal("3.00")),
        ("DECIMAL(10, 2)", "1.5", Decimal("1.50")),
        ("BOOLEAN", "true", True),
        ("BOOLEAN", False, False),
        ("STRING", "x", "x"),
        ("BYTES", b"x", b"x"),
    ],
)
def test_literals_become_values_of_their_column(spelled: str, given: object, meant: object) -> None:
    schema = schema_of(f"c {spelled}")

    validated = (col("c") == given).validated(schema)

    assert validated == Equal("c", meant)
    assert isinstance(validated, Equal)
    assert type(validated.value) is type(meant)
    assert col("c").isin([given]).validated(schema) == In("c", (meant,))


@pytest.mark.parametrize(
    ("spelled", "value"),
    [
        ("INT", "five"),
        ("INT", True),
        ("BOOLEAN", 1),
        ("DATE", "14 May"),
        ("DATE", 5),
        ("STRING", 5),
        ("BYTES", 5),
        ("TIMESTAMP(6)", "yesterday"),
        ("DECIMAL(10, 2)", "much"),
        ("INT", None),
        ("INT", [1]),
    ],
)
def test_a_literal_of_another_type_is_refused_with_column_and_value(spelled: str, value: object) -> None:
    with pytest.raises(InvalidInputError, match="'c'"):
        (col("c") == value).validated(schema_of(f"c {spelled}"))


def test_an_unknown_column_is_refused_wherever_it_stands() -> None:
    for predicate in (
        col("nme") == "a",
        col("nme").is_null(),
        ~(col("n") == 1) | col("nme").isin([1]),
        col("nme").startswith("a"),
    ):
        with pytest.raises(InvalidInputError, match="nme"):
            predicate.validated(SCHEMA)


def test_a_prefix_is_for_text_only() -> None:
    with pytest.raises(InvalidInputError, match="'n'"):
        col("n").startswith("1").validated(SCHEMA)


@pytest.mark.parametrize(("type_", "bits"), [("INT", 32), ("BIGINT", 64)])
@pytest.mark.parametrize("value", [2**40 + 0.5, -(2**80), math.inf, 2**63, -(2**63) - 1, 10**50, 3.5, -0.5])
def test_a_number_that_the_column_cannot_hold_is_still_compared(value: float, type_: str, bits: int) -> None:
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    rows = [{"n": number} for number in (least, -1, 0, 3, 4, most, None)]
    schema = schema_of(f"n {type_}")
    batch = pa.RecordBatch.from_pylist(rows, schema=schema.arrow_schema)
    bounds = stats(n=(least, most))

    for kind, compare in COMPARISONS.items():
        predicate = kind("n", value).validated(schema)
        expected = [row["n"] is not None and compare(row["n"], value) for row in rows]
        assert predicate.mask(batch).to_pylist() == expected
        assert predicate.may_match(bounds) or not any(expected)
    member = In("n", (value, 4)).validated(schema)
    assert member.mask(batch).to_pylist() == [row["n"] == 4 for row in rows]


def test_a_decimal_with_more_digits_than_the_column_is_still_compared() -> None:
    schema = schema_of("c DECIMAL(5, 2)")
    batch = pa.RecordBatch.from_pylist([{"c": Decimal("1.23")}, {"c": Decimal("1.24")}], schema=schema.arrow_schema)

    assert (col("c") > Decimal("1.235")).validated(schema).mask(batch).to_pylist() == [False, True]
    assert (col("c") == Decimal("1.235")).validated(schema).mask(batch).to_pylist() == [False, False]
    assert (col("c") < Decimal(123456)).validated(schema).mask(batch).to_pylist() == [True, True]


def test_a_text_column_in_a_dictionary_is_compared_as_text() -> None:
    batch = pa.record_batch([pa.array(["a", "b", None]).dictionary_encode()], names=["s"])

    assert (col("s") == "a").mask(batch).to_pylist() == [True, False, False]
    assert col("s").isin(["b"]).mask(batch).to_pylist() == [False, True, False]


def test_the_two_zeros_are_one_value_in_a_list() -> None:
    batch = pa.RecordBatch.from_pydict({"f": pa.array([0.0, -0.0, 1.0])})

    for zero in (0.0, -0.0):
        assert In("f", (zero,)).mask(batch).to_pylist() == [True, True, False]
