"""The SQL that EXPLAIN REFRESH shows computes the same changes as the statement that a refresh runs."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pytest
import sqlglot

from storage_lib.materialized.algebra import CompiledQuery, Moment, SourceTable, SqlDialect, compile_query
from storage_lib.sql.definition.delta_text import delta_text

SOURCES = [
    SourceTable("shop.orders", (("id", "bigint NOT NULL"), ("amount", "bigint"), ("item", "string")), ("id",)),
    SourceTable("shop.items", (("item", "string NOT NULL"), ("Group-1", "string")), ("item",)),
]
TABLES = {
    "shop_orders_before": "FROM (VALUES (1, 5, 'pen'), (2, 7, 'ink'), (3, 7, NULL)) AS t(id, amount, item)",
    "shop_orders_after": "FROM (VALUES (1, 6, 'pen'), (3, 7, NULL), (4, 1, 'cup'), (5, 2, '?')) AS t(id, amount, item)",
    "shop_items_before": "FROM (VALUES ('pen', 'a'), ('ink', 'a')) AS t(item, \"Group-1\")",
    "shop_items_after": "FROM (VALUES ('pen', 'b'), ('ink', 'a'), ('cup', 'a')) AS t(item, \"Group-1\")",
}
DELTA = "SELECT *, 1 AS _weight FROM {name}_after UNION ALL SELECT *, -1 AS _weight FROM {name}_before"
QUERIES = [
    "SELECT id, amount * 2 AS twice FROM orders WHERE amount > 5",
    "SELECT item, count(*) AS n, sum(amount) AS total FROM orders GROUP BY item",
    "SELECT i.`Group-1` AS g, max(o.amount) AS most FROM orders o JOIN items i ON o.item = i.item GROUP BY i.`Group-1`",
    "SELECT o.id, i.`Group-1` FROM orders o LEFT JOIN items i ON o.item = i.item",
    "SELECT o.id, i.item FROM orders o FULL JOIN items i ON o.item = i.item",
    "SELECT id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM items i WHERE i.item = o.item)",
    "SELECT item FROM orders UNION SELECT item FROM items",
    "SELECT id, row_number() OVER (PARTITION BY item ORDER BY amount DESC) AS place FROM orders",
    "SELECT id, (SELECT max(amount) FROM orders) AS most FROM orders",
    "SELECT sum(amount) AS total FROM orders",
]


@pytest.mark.parametrize("query", QUERIES)
def test_the_shown_statement_computes_the_same_changes(query: str) -> None:
    compiled = compile_query(query, SOURCES, database="shop")
    database = duckdb.connect()
    for name, rows in TABLES.items():
        database.execute(f"CREATE TABLE {name} AS {rows}")
    for name in ("shop_orders", "shop_items"):
        database.execute(f"CREATE TABLE {name}_delta AS {DELTA.format(name=name)}")
    whole = compiled.full(view, Moment.BEFORE, dialect=SqlDialect("duckdb"))
    database.execute(f"CREATE TABLE shop_m_before AS {whole}")

    shown = delta_text(compiled, "shop.m", compiled.columns, compiled.sources)

    assert shown is not None
    raw = compiled.delta(view, compiled.sources, dialect=SqlDialect("duckdb"))
    assert raw is not None
    (as_duckdb,) = sqlglot.transpile(shown, read="spark", write="duckdb")
    assert net(database, compiled, as_duckdb) == net(database, compiled, raw.text) != []


def test_a_query_without_a_statement_for_its_changes_has_none() -> None:
    compiled = compile_query("SELECT id FROM orders LIMIT 1 OFFSET 1", SOURCES, database="shop")

    assert delta_text(compiled, "shop.m", compiled.columns, compiled.sources) is None


def view(name: str, moment: Moment) -> str:
    return f"{name or 'shop.m'}_{moment.value}".replace(".", "_")


def net(database: duckdb.DuckDBPyConnection, compiled: CompiledQuery, statement: str) -> Sequence[object]:
    columns = ", ".join(f'"{name}"' for name in compiled.columns)
    rows = database.sql(statement).aggregate(f"{columns}, sum(_weight) AS weight").filter("weight <> 0")
    return sorted(rows.fetchall(), key=repr)
