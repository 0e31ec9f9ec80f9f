"""From which columns of the sources each column of an answer is computed."""

from __future__ import annotations

import pytest

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
