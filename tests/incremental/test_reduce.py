"""Inputs of joins lose the rows that no changed row can meet, and no others."""

from __future__ import annotations

import duckdb
import pytest
from sqlglot import exp

from storage_lib.incremental import Moment, SourceTable, compile_query
from storage_lib.incremental.change.reduce import equal_to
from storage_lib.incremental.read.scope import in_tree

SOURCES = [
    SourceTable("shop.orders", (("id", "bigint"), ("cat", "string"), ("amount", "bigint")), ("id",)),
    SourceTable("shop.cats", (("number", "int"), ("name", "string")), ("number",)),
    SourceTable("shop.names", (("cat", "string"), ("name", "string")), ("cat",)),
]


def typed(name: str, kind: str) -> exp.Expr:
    return in_tree(name, exp.DataType.build(kind, dialect="spark"))


def view(name: str, moment: Moment) -> str:
    return f"{name}_{moment.value}".replace(".", "_")


def delta(query: str, *changed: str, are_few: bool = True) -> str:
    steps = compile_query(query, SOURCES, database="shop").delta(view, changed, are_few=are_few)
    assert steps is not None
    return steps.text


def test_equality_follows_other_columns_only_of_one_type() -> None:
    a, b, c, d = typed("a", "string"), typed("b", "int"), typed("c", "string"), typed("d", "int")
    conditions = [exp.EQ(this=a, expression=b), exp.EQ(this=b, expression=c), exp.EQ(this=d, expression=b)]

    # a = '1.0' and c = '1' both equal b = 1, but not each other.
    assert equal_to(a, conditions) == [b, d]
    assert equal_to(b, conditions) == [a, c, d]
    assert equal_to(a, conditions, is_converted=True) == []
    assert equal_to(b, conditions, is_converted=True) == [d]
    assert equal_to(typed("e", "int"), conditions) == []


def test_equality_needs_known_types_beyond_the_first_step() -> None:
    a, b, c = (exp.column(name) for name in "abc")
    conditions = [exp.and_(exp.EQ(this=a, expression=b), exp.EQ(this=exp.paren(b), expression=c))]

    assert equal_to(a, conditions) == [b]


def test_comparisons_that_are_true_for_two_nulls_reduce_nothing() -> None:
    text = delta("SELECT o.id, n.name FROM orders o JOIN names n ON o.cat <=> n.cat", "shop.orders")

    assert "EXISTS" not in text
    assert "EXISTS" in delta("SELECT o.id, n.name FROM orders o JOIN names n ON o.cat = n.cat", "shop.orders")


def test_many_changes_reduce_nothing() -> None:
    query = "SELECT o.id, n.name FROM orders o JOIN names n ON o.cat = n.cat"

    assert "EXISTS" not in delta(query, "shop.orders", are_few=False)


GROUPED = "SELECT cat, sum(amount) AS n FROM orders GROUP BY cat"
PLACED = "SELECT cat, row_number() OVER (PARTITION BY cat ORDER BY id) AS n FROM orders"
OUTER = "SELECT o.cat, c.name AS n FROM orders o LEFT JOIN cats c ON o.id = c.number"


@pytest.mark.parametrize("inner", [GROUPED, PLACED, OUTER], ids=["groups", "windows", "outer join"])
def test_a_reduction_reaches_the_source_below_other_operators(inner: str) -> None:
    text = delta(f"SELECT m.name, s.n FROM names m JOIN ({inner}) s ON m.cat = s.cat", "shop.names")

    reads = text.split("FROM shop_orders_")[1:]
    assert reads
    # The semi-join is around the scan: before the operator that reads it has ended.
    assert all("EXISTS" in each.partition("GROUP BY")[0] for each in reads)


def test_a_string_that_equals_another_by_way_of_a_number_is_found() -> None:
    query = """
        SELECT o.id, n.name FROM orders o, cats c, names n
        WHERE o.cat = c.number AND c.number = n.cat
    """
    compiled = compile_query(query, SOURCES, database="shop")
    database = duckdb.connect()
    database.execute("CREATE TABLE shop_orders_delta AS SELECT 1 AS id, '01' AS cat, 5 AS amount, 1 AS _weight")
    for moment in ("before", "after"):
        database.execute(f"CREATE TABLE shop_cats_{moment} AS SELECT 1::INT AS number, 'x' AS name")
        database.execute(f"CREATE TABLE shop_names_{moment} AS SELECT '1' AS cat, 'one' AS name")

    steps = compiled.delta(view, ["shop.orders"], dialect="duckdb")

    assert steps is not None
    assert database.execute(steps.text).fetchall() == [(1, "one", 1)]
