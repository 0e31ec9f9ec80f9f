"""Filters given as Polars or Arrow expressions select the same rows as Polars and Arrow."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from storage_lib import DynamicTable, InvalidInputError, MemoryCatalog
from storage_lib.schema.evolution.schema_changes import RenameColumn
from tests.support.extras import needed

CASES = 150
DAY = dt.date(2024, 2, 28)
NOON = dt.datetime(2024, 2, 28, 12)  # noqa: DTZ001  the column has no time zone
WORDS = ("cup", "cap", "tea", "", "O'Neill", '"')
TYPES = {
    "id": "BIGINT",
    "n": "INT",
    "price": "DOUBLE",
    "cost": "DECIMAL(10, 2)",
    "item": "STRING",
    "day": "DATE",
    "at": "TIMESTAMP(6)",
    "sold": "BOOLEAN",
}


VALUES: dict[str, Callable[[Random], Any]] = {
    "id": lambda rng: rng.randrange(12),
    "n": lambda rng: rng.randrange(12),
    "price": lambda rng: rng.randrange(40) / 4,
    "cost": lambda rng: Decimal(rng.randrange(400)) / 100,
    "item": lambda rng: rng.choice(WORDS),
    "day": lambda rng: DAY + dt.timedelta(days=rng.randrange(4)),
    "at": lambda rng: NOON + dt.timedelta(microseconds=rng.randrange(4)),
    "sold": lambda rng: rng.random() < 0.5,
}


def value(rng: Random, name: str) -> Any:
    return VALUES[name](rng)


def table_of(rng: Random, *, key: bool) -> DynamicTable:
    """Create three overlapping commits; the column ``n`` was renamed from ``m``, and rows were deleted."""
    schema = {"m" if name == "n" else name: of for name, of in TYPES.items()}
    options = {"log.system": "none"} | ({} if key else {"write-mode": "append-only"})
    catalog = MemoryCatalog()
    table = catalog.create_table("d.t", schema, primary_key=["id"] if key else [], options=options)
    for number in range(3):
        ids = rng.sample(range(30), 15)
        columns = [
            pa.array(
                ids
                if field.name == "id"
                else [
                    None if rng.random() < 0.2 else value(rng, "n" if field.name == "m" else field.name) for _ in ids
                ],
                field.type,
            )
            for field in table.arrow_schema
        ]
        table.append(pa.table(columns, schema=table.arrow_schema))
        if number == 0:
            table = table.alter(RenameColumn("m", "n"))
    if key:
        needed("sqlglot")
        table.delete("id IN (3, 4)")
    return table


def expressions(rng: Random, depth: int = 0) -> tuple[pl.Expr, pc.Expression]:
    """Return the same random condition for both libraries."""
    if depth == 3 or rng.random() < 0.45:
        return comparison(rng, rng.choice([each for each in TYPES if each != "sold"]))
    left, right = expressions(rng, depth + 1), expressions(rng, depth + 1)
    joined = [(left[0] & right[0], left[1] & right[1]), (left[0] | right[0], left[1] | right[1]), (~left[0], ~left[1])]
    return rng.choice(joined)


def comparison(rng: Random, name: str) -> tuple[pl.Expr, pc.Expression]:
    column, field = pl.col(name), pc.field(name)
    literal, high, some = value(rng, name), value(rng, name), [value(rng, name) for _ in range(rng.randint(1, 3))]
    sign = rng.choice(("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"))
    # For a null looked up among values Arrow returns false, Polars and SQL return null.
    among = pc.if_else(
        field.is_null(), pa.scalar(None, pa.bool_()), field.isin(pa.array(some, _scalar(name, literal).type))
    )
    between = (field >= _scalar(name, literal)) & (field <= _scalar(name, high))
    return rng.choice(
        [
            (getattr(column, sign)(literal), getattr(field, sign)(_scalar(name, literal))),
            (pl.lit(literal) < column, pc.scalar(_scalar(name, literal)) < field),
            (column.is_in(some), among),
            (column.is_between(pl.lit(literal), pl.lit(high)), between),
            (column.is_null(), field.is_null()),
            (column.is_not_null(), field.is_valid()),
            (pl.col("sold"), pc.field("sold")),
            (pl.col("item").str.starts_with("c"), pc.starts_with(pc.field("item"), "c")),
        ]
    )


def _scalar(name: str, literal: Any) -> pa.Scalar:
    return pa.scalar(literal, pa.decimal128(10, 2) if name == "cost" else None)


@pytest.mark.parametrize("seed", range(6))
def test_they_select_what_their_libraries_select(seed: int) -> None:
    rng = Random(seed)  # noqa: S311  chance, not secrets
    key = seed % 2 == 0
    table = table_of(rng, key=key)
    whole = table.to_arrow()
    for _ in range(CASES // 6):
        of_polars, of_arrow = expressions(rng)
        expected = sorted(map(repr, pl.DataFrame(whole).filter(of_polars).rows()))
        assert sorted(map(repr, pl.DataFrame(whole.filter(of_arrow)).rows())) == expected, of_arrow

        for given in (of_polars, of_arrow):
            assert sorted(map(repr, pl.DataFrame(table.to_arrow(filter=given)).rows())) == expected, given
            assert table.count(filter=given) == len(expected), given
            narrow = table.to_arrow(columns=["item"], filter=given)
            assert narrow.column_names == ["item"]
            assert narrow.num_rows == len(expected), given


def test_rows_are_updated_and_deleted_by_them() -> None:
    table = table_of(Random(1), key=True)  # noqa: S311  likewise
    many = table.count()
    found = table.count(filter="price > 5")
    assert 0 < found < many

    table.update(pc.field("price") > 5, {"item": "dear"})
    assert table.count(filter="item = 'dear'") == found
    table.delete(pl.col("item") == "dear")
    assert table.count() == many - found
    table.delete(pc.field("price").is_valid() | pc.field("price").is_null())
    assert table.count() == 0


@pytest.mark.parametrize(
    "given",
    [
        pl.col("price") > pl.col("price").mean(),
        pl.col("price") > pl.col("cost"),
        pl.col("price") + 1 > 5,
        pl.col("item") == pl.lit(None),
        pl.col("n").ne_missing(3),
        pl.col("n").is_in([1, None]),
        pl.col("n").is_in([1], nulls_equal=True),
        pl.col("n").is_between(1, 3, closed="left"),
        pl.col("n").cum_sum() > 3,
        pl.col("sold").shift(1),
        pl.lit(True),
        pl.all() > 3,
    ],
    ids=str,
)
def test_what_is_no_condition_on_one_row_is_refused(given: pl.Expr) -> None:
    table = table_of(Random(2), key=True)  # noqa: S311  likewise

    with pytest.raises(InvalidInputError, match="of Polars' expressions a filter takes"):
        table.to_arrow(filter=given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (pl.col("prize") > 3, "prize"),
        (pl.col("n") > "x", "'x'"),
        (pc.field("prize") > 3, "does not fit the table: No match for FieldRef.*prize"),
        (pc.field("n") > "x", "does not fit the table"),
        (pc.add(pc.field("n"), 1), "is of type int32; give a condition"),
        (["price", ">", 5], "a filter is text, made of col"),
    ],
)
def test_what_does_not_fit_the_table_is_refused_with_its_name(given: Any, said: str) -> None:
    table = table_of(Random(3), key=True)  # noqa: S311  likewise

    with pytest.raises(InvalidInputError, match=said):
        table.to_arrow(filter=given)
