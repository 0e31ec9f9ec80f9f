"""Filters as text select the same rows as DuckDB does for the same text."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from storage_lib import InvalidInputError, col, open_catalog
from storage_lib.schema.filter.filter_text import parse_filter

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("price", pa.float64()),
        ("cost", pa.decimal128(10, 2)),
        ("item", pa.string()),
        ("day", pa.date32()),
        ("sold", pa.bool_()),
    ]
)
CASES = 300


def rows_of(chance: random.Random, count: int) -> pa.Table:
    def column(make: Callable[[], object]) -> list[object]:
        return [None if chance.random() < 0.2 else make() for _ in range(count)]

    return pa.table(
        {
            "id": list(range(count)),
            "price": column(lambda: chance.randrange(40) / 4),
            "cost": column(lambda: Decimal(chance.randrange(4000)) / 100),
            "item": column(lambda: chance.choice(["cup", "cap", "tea", "teapot", "", "O'Neill", "50%"])),
            "day": pa.array(column(lambda: 20000 + chance.randrange(20)), pa.int32()).cast(pa.date32()),
            "sold": column(lambda: chance.random() < 0.5),
        },
        schema=SCHEMA,
    )


def a_filter(chance: random.Random, depth: int = 0) -> str:
    if depth < 3 and chance.random() < 0.6:
        left, right = a_filter(chance, depth + 1), a_filter(chance, depth + 1)
        return chance.choice([f"({left}) AND {right}", f"({left} OR {right})", f"NOT ({left})", f"{left} and {right}"])
    sign = chance.choice(["=", "<>", "!=", "<", "<=", ">", ">="])
    day = f"2024-10-{chance.randrange(4, 24):02}"
    return chance.choice(
        [
            f"price {sign} {chance.randrange(40) / 4}",
            f"{chance.randrange(10)} {sign} price",
            f"cost {sign} {chance.randrange(4000) / 100}",
            f"id {sign} {chance.randrange(-3, 30)}",
            f"`item` {sign} '{chance.choice(['cup', 'tea', 'x'])}'".replace("`", ""),
            f"day {sign} DATE '{day}'",
            f"day BETWEEN '{day}' AND '2024-10-20'",
            "item LIKE 'te%'",
            "NOT item LIKE 'c%'",
            "item NOT LIKE 'c%'",
            "item IN ('tea', 'cup', '50%')",
            f"id NOT IN ({chance.randrange(9)}, {chance.randrange(9)})",
            "price IS NULL",
            "item IS NOT NULL",
            "sold",
            "NOT sold",
            "sold = TRUE",
        ]
    )


def test_random_filters_select_what_duckdb_selects(tmp_path: Path) -> None:
    chance = random.Random(7)  # noqa: S311  a seeded test
    rows = rows_of(chance, 60)
    table = open_catalog(tmp_path).create_table("db.t", SCHEMA, primary_key=["id"])
    table.append(rows.slice(0, 30))
    table.append(rows.slice(30))

    connection = duckdb.connect()
    connection.register("rows", rows)
    for _ in range(CASES):
        text = a_filter(chance)
        wanted = [row[0] for row in connection.execute(f"SELECT id FROM rows WHERE {text} ORDER BY id").fetchall()]  # noqa: S608
        assert sorted(table.to_arrow(filter=parse_filter(text))["id"].to_pylist()) == wanted, text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("price >", "invalid filter 'price >': syntax error near '>', character 7"),
        ("price > 5; DROP TABLE t", "syntax error near 'DROP', character 15"),
        ("item = 'x", "invalid filter"),
        ("", "invalid filter '': No expression was parsed"),
        ("price > cost", "write a literal there"),
        ("price + 1 > 5", "write a column's name there"),
        ("lower(item) = 'x'", "write a column's name there"),
        ("price = NULL", "use IS NULL"),
        ("price IS TRUE", "compares columns with literals"),
        ("item LIKE '%p'", "one % at its end"),
        (r"item LIKE 'a\_%'", "one % at its end"),
        ("item LIKE ANY ('a%')", "write a literal there"),
        ("item LIKE 'a!%' ESCAPE '!'", "compares columns with literals"),
        ("item ILIKE 'a%'", "compares columns with literals"),
        ("price <=> 3", "compares columns with literals"),
        ("item IN (SELECT 1)", "compares columns with literals"),
        ("t.price > 5", "write a column's name there"),
        ("1 = 1", "write a column's name there"),
        ("CASE WHEN sold THEN TRUE END", "compares columns with literals"),
    ],
)
def test_what_a_predicate_can_not_say_is_refused_with_the_place(text: str, reason: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        parse_filter(text)

    assert reason in str(refused.value)


def test_a_quote_within_text_is_escaped_as_in_spark() -> None:
    assert parse_filter(r"item = 'O\'Neill'") == (col("item") == "O'Neill")
    assert parse_filter("item = 'O''Neill'") == (col("item") == "O'Neill")
    assert parse_filter('item = "a""b\'c"') == (col("item") == "a\"b'c")
    with pytest.raises(InvalidInputError, match="write one text"):
        parse_filter("item = 'O' 'Neill'")


def test_names_that_need_quoting_may_be_quoted() -> None:
    assert parse_filter("`select` = 1") == (col("select") == 1)


def test_a_filter_of_another_type_is_refused_with_the_way_to_write_it(tmp_path: Path) -> None:
    table = open_catalog(tmp_path).create_table("db.t", SCHEMA, primary_key=["id"])

    with pytest.raises(InvalidInputError, match=r"not pyarrow\.\S*Scalar: write filter=\"price > 5\""):
        table.to_arrow(filter=pa.scalar(5))
