"""From which columns of the sources each column of an answer is computed."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
import sqlglot

from storage_lib.errors import InvalidInputError
from storage_lib.materialized.algebra import SourceTable
from storage_lib.materialized.algebra.column_lineage import column_lineage

SOURCES = [
    SourceTable(
        name="shop.orders", columns=(("Id", "bigint"), ("item", "string"), ("amount", "bigint")), primary_key=("Id",)
    ),
    SourceTable(name="shop.items", columns=(("item", "string"), ("price", "bigint")), primary_key=("item",)),
]
ORDERS, ITEMS = "shop.orders", "shop.items"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT id, amount * 2 AS Twice FROM orders", {"id": [(ORDERS, "Id")], "Twice": [(ORDERS, "amount")]}),
        ("SELECT * FROM items", {"item": [(ITEMS, "item")], "price": [(ITEMS, "price")]}),
        (
            "SELECT item, count(*) AS n, sum(amount) AS total FROM orders GROUP BY item HAVING min(id) > 0",
            {"item": [(ORDERS, "item")], "n": [], "total": [(ORDERS, "amount")]},
        ),
        (
            "SELECT o.id AS k, o.amount * i.price AS worth FROM orders o LEFT JOIN items i ON o.item = i.item",
            {"k": [(ORDERS, "Id")], "worth": [(ITEMS, "price"), (ORDERS, "amount")]},
        ),
        (
            "WITH t AS (SELECT item, sum(amount) AS s FROM orders GROUP BY item) SELECT s + 1 AS more, item FROM t",
            {"more": [(ORDERS, "amount")], "item": [(ORDERS, "item")]},
        ),
        (
            "SELECT item FROM orders UNION ALL SELECT upper(item) FROM items",
            {"item": [(ITEMS, "item"), (ORDERS, "item")]},
        ),
        (
            "SELECT id, row_number() OVER (PARTITION BY item ORDER BY amount) AS place FROM orders",
            {"id": [(ORDERS, "Id")], "place": [(ORDERS, "amount"), (ORDERS, "item")]},
        ),
        (
            "SELECT a.id AS x, b.amount AS y FROM orders a, orders b WHERE a.item IN (SELECT item FROM items)",
            {"x": [(ORDERS, "Id")], "y": [(ORDERS, "amount")]},
        ),
        ("SELECT CASE WHEN amount > 1 THEN item END AS c FROM orders", {"c": [(ORDERS, "amount"), (ORDERS, "item")]}),
        ("SELECT q.z FROM (SELECT id AS z, 1 AS one FROM orders) q", {"z": [(ORDERS, "Id")]}),
        (
            "SELECT id AS n, item FROM orders UNION ALL BY NAME SELECT upper(item) AS item, price AS n FROM items",
            {"n": [(ITEMS, "price"), (ORDERS, "Id")], "item": [(ITEMS, "item"), (ORDERS, "item")]},
        ),
        (
            "SELECT id, word FROM orders LATERAL VIEW explode(split(item, ' ')) t AS word",
            {"id": [(ORDERS, "Id")], "word": [(ORDERS, "item")]},
        ),
        ("SELECT 1 AS one, current_date() AS today FROM orders", {"one": [], "today": []}),
    ],
)
def test_each_column_of_an_answer_names_the_columns_that_it_is_computed_from(
    query: str, expected: dict[str, list[tuple[str, str]]]
) -> None:
    found = column_lineage(query, SOURCES, database="shop")

    assert {label: list(sources) for label, sources in found.items()} == expected


def test_a_query_that_names_an_unknown_column_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="there is no column missing"):
        column_lineage("SELECT missing FROM orders", SOURCES, database="shop")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM orders, LATERAL (SELECT price FROM items WHERE items.item = orders.item) t",
        "SELECT id FROM orders UNION ALL BY NAME (SELECT price AS id FROM items UNION ALL SELECT 1)",
    ],
)
def test_a_query_whose_columns_would_be_traced_to_others_is_refused(query: str) -> None:
    with pytest.raises(InvalidInputError, match="can't be traced"):
        column_lineage(query, SOURCES, database="shop")


ROWS: dict[str, list[dict[str, int | str]]] = {
    ORDERS: [{"Id": n, "item": "abcab"[n], "amount": 10 * n + n % 2} for n in range(5)],
    ITEMS: [{"item": item, "price": 7 * n + 1} for n, item in enumerate("abd")],
}
PROBED: dict[str, set[str]] = {
    # By query, the columns that select rows: all columns of the answer may depend on them.
    "SELECT * FROM orders": set(),
    "SELECT o.*, i.price - 1 AS less FROM orders o JOIN items i ON o.item = i.item": {"item"},
    "SELECT id, item, price FROM orders FULL JOIN items USING (item)": {"item"},
    "SELECT item, sum(amount) AS s, count(*) AS n, max(id) AS m FROM orders GROUP BY item": {"item"},
    "SELECT CASE WHEN amount > 20 THEN item ELSE 'x' END AS c, coalesce(nullif(id, 2), amount) AS d FROM orders": set(),
    "SELECT id AS k, item AS t FROM orders UNION ALL SELECT price, concat(item, '!') FROM items": set(),
    "SELECT id, item FROM orders UNION ALL BY NAME SELECT item, price AS id FROM items": set(),
    "SELECT id, (SELECT max(price) FROM items i WHERE i.item = o.item) AS top FROM orders o": {"item"},
    "SELECT s * 2 AS twice, n FROM (SELECT sum(amount) AS s, count(id) AS n FROM (SELECT * FROM orders) q) r": set(),
    "WITH a AS (SELECT id, amount AS x FROM orders), b AS (SELECT a.*, x + id AS y FROM a) SELECT y, x FROM b": set(),
    "SELECT id, sum(amount) OVER (PARTITION BY item ORDER BY id) AS running FROM orders": set(),
    "SELECT id FROM orders WHERE amount > (SELECT avg(price) FROM items)": {"amount", "price"},
}


@pytest.mark.parametrize("query", PROBED)
def test_a_change_of_a_column_changes_only_what_is_computed_from_it(query: str) -> None:
    lineage = column_lineage(query, SOURCES, database="shop")
    before = answer(query, ROWS)
    for table, rows in ROWS.items():
        for column in (each for each in rows[0] if each not in PROBED[query]):
            after = answer(query, ROWS | {table: [row | {column: other(row[column])} for row in rows]})
            for name, sources in lineage.items():
                if before[name.lower()] != after[name.lower()]:
                    assert (table, column) in sources, (table, column, name)


def other(value: int | str) -> int | str:
    return value * 3 + 11 if isinstance(value, int) else f"{value}z"


def answer(query: str, tables: dict[str, list[dict[str, int | str]]]) -> dict[str, list[str]]:
    """Return the values of each column of an answer, in no order."""
    connection = duckdb.connect()
    connection.execute("CREATE SCHEMA shop; USE shop")
    for name, rows in tables.items():
        held = pa.Table.from_pylist(rows)
        connection.register("held", held)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM held")
        connection.unregister("held")
    found = connection.sql(sqlglot.transpile(query, read="spark", write="duckdb")[0]).to_arrow_table()
    return {name.lower(): sorted(map(repr, found[name].to_pylist())) for name in found.column_names}
