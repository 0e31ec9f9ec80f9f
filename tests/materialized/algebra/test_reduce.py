"""Inputs of joins lose the rows that no changed row can meet, and no others."""

from __future__ import annotations

from collections import Counter

import duckdb
import pytest
from sqlglot import exp

from storage_lib.materialized.algebra import Moment, SourceTable, SqlDialect, compile_query
from storage_lib.materialized.algebra.change.reduce import Reduction
from storage_lib.materialized.algebra.tree.relational_operators import Relation, Scan, inputs_of

SOURCES = [
    SourceTable(
        "shop.orders", (("id", "bigint"), ("cat", "string"), ("amount", "bigint"), ("price", "double")), ("id",)
    ),
    SourceTable("shop.cats", (("number", "int"), ("name", "string")), ("number",)),
    SourceTable("shop.names", (("cat", "string"), ("name", "string")), ("cat",)),
]


def view(name: str, moment: Moment) -> str:
    return f"{name}_{moment.value}".replace(".", "_")


def delta(query: str, *changed: str, are_few: bool = True) -> str:
    steps = compile_query(query, SOURCES, database="shop").delta(view, changed, are_few=are_few)
    assert steps is not None
    return steps.text


def test_equality_follows_only_columns_of_one_type() -> None:
    types = {"a": "string", "b": "integer", "c": "string", "d": "integer", "e": "string"}
    a, b, c, d, e, f = (exp.column(name) for name in "abcdef")
    conditions = [
        exp.EQ(this=a, expression=b),
        exp.EQ(this=b, expression=c),
        exp.and_(exp.EQ(this=d, expression=b), exp.EQ(this=exp.paren(e), expression=a)),
        exp.EQ(this=e, expression=exp.Upper(this=c)),
        exp.EQ(this=f, expression=e),
    ]

    # a = '1.0' and c = '1' both equal b = 1, but not each other.
    found = {name: Reduction(types).equal_to(name, conditions) for name in "abcdef"}
    assert found == {"a": ["e"], "b": ["d"], "c": [], "d": ["b"], "e": ["a"], "f": []}


def test_only_unchanged_columns_of_comparable_types_are_known() -> None:
    query = compile_query(
        "SELECT o.id, upper(o.cat) AS u, c.number, o.price FROM orders o JOIN cats c ON o.id = c.number"
        " UNION ALL SELECT amount, cat, 1, price FROM orders",
        SOURCES,
        database="shop",
    )

    assert query.tree is not None
    scans = [each for each in walked(query.tree) if isinstance(each, Scan)]
    names = {own: f"{each.table}.{name}" for each in scans for name, own in each.columns}
    known = {names[own]: kind for own, kind in query.types.items() if own in names}
    assert known == {
        "shop.orders.id": "integer",
        "shop.orders.cat": "string",
        "shop.orders.amount": "integer",
        "shop.cats.number": "integer",
    }
    assert not set(query.types) & set(query.tree.outputs)


def walked(relation: Relation) -> list[Relation]:
    return [relation, *(found for each in inputs_of(relation) for found in walked(each))]


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


ROWS = [SourceTable(f"shop.{name}", (("id", "bigint"), ("s", "string"), ("n", "int")), ("id",)) for name in "abc"]


IN_UNION = """
    SELECT k, count(*) AS m FROM (SELECT a.n AS k FROM a JOIN b ON a.n = b.s UNION ALL SELECT s FROM c) GROUP BY k
"""
UNKNOWN = """
    SELECT a.id AS i, c.id AS j FROM a, b, c
    WHERE a.s = bit_count(b.n) AND bit_count(b.n) = split_part(c.s, ',', 1)
"""
HAVING = """
    SELECT a.m, b.id AS j FROM (SELECT s, count(*) AS m FROM a GROUP BY s HAVING min(n) = 1) AS a JOIN b ON a.s = b.n
"""


@pytest.mark.parametrize(
    ("query", "old", "new"),
    [
        (
            "SELECT a.id AS i, c.id AS j FROM a, b, c WHERE a.s = b.n AND b.n = c.s",
            {"b": [(1, "", 1)], "c": [(1, "1", 0)]},
            {"a": (1, "01", 0)},
        ),
        (
            UNKNOWN,
            {"b": [(1, "", 1)], "c": [(1, "1,q", 0)]},
            {"a": (1, "01", 0)},
        ),
        (
            "SELECT a.id AS i, b.id AS j FROM a JOIN b ON a.s = b.n WHERE a.id < 10",
            {"a": [(1, "1", 0)], "b": [(1, "", 1)]},
            {"a": (20, "no number", 0)},
        ),
        (
            "SELECT a.id AS i, b.id AS j, c.id AS k FROM a, b, c WHERE a.s = b.n AND a.s = c.s",
            {"a": [(1, "1", 0)], "c": [(1, "no number", 0), (2, "1", 0)]},
            {"b": (1, "", 1)},
        ),
        (
            HAVING,
            {"a": [(1, "1", 1), (2, "no number", 2)]},
            {"b": (1, "", 1)},
        ),
        (
            IN_UNION,
            {"a": [(1, "", 1)]},
            {"b": (1, "01", 0)},
        ),
        (
            IN_UNION,
            {"a": [(1, "", 1)], "b": [(1, "01", 0)]},
            {"c": (1, "1", 0)},
        ),
    ],
    ids=["chain", "unknown types", "filtered change", "never converted", "HAVING", "union", "union with two forms"],
)
@pytest.mark.parametrize("are_few", [True, False])
def test_values_that_the_query_converts_lose_no_row_and_are_not_converted_elsewhere(
    query: str, old: dict[str, list[tuple[object, ...]]], new: dict[str, tuple[object, ...]], *, are_few: bool
) -> None:
    compiled = compile_query(query, ROWS, database="shop")
    database = duckdb.connect()
    for name in "abc":
        columns = "(id BIGINT, s VARCHAR, n INT"
        for moment in ("before", "after"):
            database.execute(f"CREATE TABLE shop_{name}_{moment} {columns})")
        database.execute(f"CREATE TABLE shop_{name}_delta {columns}, _weight BIGINT)")
        for row in old.get(name, []):
            database.execute(f"INSERT INTO shop_{name}_before VALUES (?, ?, ?)", row)
            database.execute(f"INSERT INTO shop_{name}_after VALUES (?, ?, ?)", row)
        if name in new:
            database.execute(f"INSERT INTO shop_{name}_after VALUES (?, ?, ?)", new[name])
            database.execute(f"INSERT INTO shop_{name}_delta VALUES (?, ?, ?, 1)", new[name])
    before, after = (
        Counter(database.execute(compiled.full(view, moment, dialect=SqlDialect("duckdb"))).fetchall())
        for moment in (Moment.BEFORE, Moment.AFTER)
    )

    steps = compiled.delta(
        view, [f"shop.{name}" for name in new], dialect=SqlDialect("duckdb"), may_read_result=False, are_few=are_few
    )

    assert steps is not None
    for *values, weight in database.execute(steps.text).fetchall():
        before[tuple(values)] += weight
    assert {row: count for row, count in before.items() if count} == after
    assert after
