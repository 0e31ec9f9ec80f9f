"""Which queries have a delta, which are computed in full and why, and which are refused."""

from __future__ import annotations

import pytest

from storage_lib.errors import InvalidInputError
from storage_lib.materialized.algebra import CompiledQuery, Moment, SourceTable, compile_query, tables_of

ORDERS = SourceTable(
    "shop.orders",
    (
        ("id", "BIGINT NOT NULL"),
        ("cat", "INT"),
        ("amount", "DECIMAL(10,2)"),
        ("price", "DOUBLE"),
        ("big", "BIGINT"),
        ("Note", "STRING"),
        ("at", "TIMESTAMP"),
        ("tags", "ARRAY<STRING>"),
        ("who", "STRUCT<name:STRING,age:INT>"),
    ),
    ("id",),
)
CATEGORY = SourceTable("shop.category", (("cat", "INT"), ("name", "STRING")), ("cat",))


def compiled(text: str) -> CompiledQuery:
    return compile_query(text, [ORDERS, CATEGORY], database="shop")


def views(table: str, moment: Moment) -> str:
    return f"{table.replace('.', '_')}_{moment.value}" if table else "result"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT nothing FROM orders", "line 1, column 8: there is no column nothing"),
        ("SELECT o.nothing FROM orders o", "line 1, column 10: there is no column o.nothing"),
        ("SELECT id\nFROM nowhere", "line 2, column 6: there is no table shop.nowhere"),
        (
            "SELECT cat FROM orders o JOIN category c ON o.cat = c.cat",
            "line 1, column 8: column cat is ambiguous: it is in shop.orders, shop.category; qualify it with an alias",
        ),
        ("SELECT id, id FROM orders", "two columns of the result are called id; give one of them another alias"),
        ("SELECT id AS a, cat AS A FROM orders", "two columns of the result are called A"),
        ("SELECT id, cat + 1 FROM orders", "column 2 of the result has no name; give it one with AS"),
        ("SELECT id, count(*) AS n FROM orders", "line 1, column 8: orders.id is neither in GROUP BY nor aggregated"),
        ("SELECT id FRM orders", "line 1, column 15: Invalid expression / Unexpected token, at 'orders'"),
        ("SELECT id FROM orders WHERE", "line 1, column 23: incomplete, at 'WHERE'"),
        ("SELECT 'a FROM orders", "the query cannot be parsed"),
        ("DELETE FROM orders", "line 1, column 1: expected a query"),
        ("SELECT id FROM orders VERSION AS OF 3", "line 1, column 16: orders: a query that is kept up to date reads"),
        ("SELECT id FROM a.b.c", "line 1, column 16: there is no table a.b.c"),
        (
            "SELECT id FROM a.b.c.d",
            "line 1, column 16: a.b.c.d: name tables as database.table, or catalog.database.table",
        ),
        ("SELECT id FROM orders UNION ALL SELECT cat, name FROM category", "have 1 and 2 columns"),
    ],
)
def test_a_query_that_cannot_be_right_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        compiled(text)

    assert str(refused.value).startswith(message) or message in str(refused.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT my_udf(id) AS x FROM orders", "it is not known whether my_udf() depends on its arguments only"),
        ("SELECT id, now() AS t FROM orders", "now() differs from run to run"),
        ("SELECT id FROM orders WHERE price > rand()", "RAND() differs from run to run"),
        ("SELECT id FROM orders LIMIT 3 OFFSET 1", "OFFSET skips rows that the answer does not hold"),
        ("SELECT id, row_number() OVER (ORDER BY id) AS r FROM orders", "a window without PARTITION BY reads all rows"),
        ("SELECT cat, count(*) AS n FROM orders GROUP BY ROLLUP(cat)", "GROUP BY ROLLUP has no rule"),
        ("SELECT cat, count(*) AS n FROM orders GROUP BY cat WITH CUBE", "GROUP BY CUBE has no rule"),
        ("SELECT cat, first(id) AS f FROM orders GROUP BY cat", "FIRST(orders.id) depends on the order of rows"),
        ("SELECT explode(tags) AS x FROM orders", "there is no rule for EXPLODE(orders.tags)"),
        ("SELECT id FROM orders LATERAL VIEW explode(tags) t AS tag", "there is no rule for LATERAL VIEW"),
        ("SELECT id FROM orders TABLESAMPLE (10 PERCENT)", "SAMPLE of a table has no rule"),
        ("SELECT avg(big) AS a FROM orders", "AVG() of BIGINT may differ in its last digits from run to run"),
        (
            "SELECT max(s) AS m FROM (SELECT cat, sum(price) AS s FROM orders GROUP BY cat)",
            "SUM() of DOUBLE may differ in its last digits from run to run",
        ),
        (
            "SELECT id FROM orders WHERE id = 1 OR EXISTS (SELECT 1 FROM category)",
            "EXISTS and IN with a query have a rule only where AND connects them",
        ),
        ("SELECT o.id FROM category a, orders o RIGHT JOIN category c ON o.cat = c.cat", "RIGHT JOIN after a comma"),
        ("SELECT o.id FROM category a, orders o JOIN category c USING (cat)", "a JOIN USING after a comma"),
        (
            "SELECT id, (SELECT name FROM category c WHERE c.cat = o.cat) AS n FROM orders o",
            "a scalar sub-query without an aggregate may have several rows",
        ),
    ],
)
def test_a_query_without_a_rule_is_computed_in_full_and_says_why(text: str, reason: str) -> None:
    query = compiled(text)

    assert query.reason is not None
    assert query.reason.startswith(reason)
    assert not query.is_incremental
    assert "shop_orders_after" in query.full(views)
    with pytest.raises(ValueError, match="has no delta"):
        query.delta(views, ["shop.orders"])


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("SELECT id, price FROM orders", ("id",)),
        ("SELECT price FROM orders", None),
        ("SELECT id + 1 AS id FROM orders", None),
        ("SELECT o.id, c.name FROM orders o JOIN category c ON o.cat = c.cat", ("id",)),
        ("SELECT o.id, c.name FROM orders o LEFT JOIN category c ON o.cat = c.cat", ("id",)),
        ("SELECT o.id, c.cat FROM orders o JOIN category c ON o.cat > c.cat", ("id", "cat")),
        ("SELECT o.id, c.cat FROM orders o LEFT JOIN category c ON o.cat > c.cat", None),
        ("SELECT o.id, c.cat FROM orders o FULL JOIN category c ON o.cat = c.cat", None),
        ("SELECT cat, count(*) AS n FROM orders GROUP BY cat", None),
        ("SELECT cat, count(*) AS n FROM orders WHERE cat > 3 GROUP BY cat", ("cat",)),
        ("SELECT coalesce(cat, 0) AS cat, count(*) AS n FROM orders GROUP BY coalesce(cat, 0)", ("cat",)),
        ("SELECT id FROM orders UNION ALL SELECT id FROM orders", None),
        ("SELECT id FROM orders WHERE cat IN (SELECT cat FROM category)", ("id",)),
    ],
)
def test_a_key_is_derived_where_every_answer_has_one_without_nulls(text: str, key: tuple[str, ...] | None) -> None:
    assert compiled(text).key == key


def test_only_the_columns_that_a_query_reads_are_needed() -> None:
    query = compiled("SELECT o.id, c.name FROM orders o JOIN category c ON o.cat = c.cat WHERE o.price > 1")

    assert query.needed == {"shop.orders": ("id", "cat", "price"), "shop.category": ("cat", "name")}
    assert compiled("SELECT count(*) AS n FROM orders").needed == {"shop.orders": ()}


def test_columns_keep_the_case_in_which_they_are_written() -> None:
    assert compiled("SELECT ID, note AS Remark FROM orders").columns == ("ID", "Remark")
    assert compiled("SELECT * EXCEPT (tags, who, at, big, price, amount, cat) FROM orders").columns == ("id", "Note")


def test_tables_are_named_once_and_common_table_expressions_hide_them() -> None:
    text = "WITH orders AS (SELECT * FROM other.orders) SELECT * FROM orders, category a, shop.category b"

    assert tables_of(text, database="shop") == ("other.orders", "shop.category")


def test_the_delta_of_a_filter_is_the_filter_of_the_delta() -> None:
    query = compiled("SELECT id FROM orders WHERE cat > 3")

    steps = query.delta(views, ["shop.orders"])
    assert steps is not None
    assert steps.text == (
        "SELECT c1 AS id, c1000000 AS _weight FROM (SELECT c1 AS c1, c1000000 AS c1000000 FROM (SELECT c1, c2, c1000000"
        " FROM (SELECT id AS c1, cat AS c2, _weight AS c1000000 FROM shop_orders_delta) AS r0 WHERE (c2 > 3)) AS r0)"
        " AS d"
    )
    assert query.delta(views, ["shop.category"]) is None


def test_a_join_reads_the_other_side_as_it_is_for_one_delta_and_as_it_was_for_the_other() -> None:
    query = compiled("SELECT o.id, c.name FROM orders o JOIN category c ON o.cat = c.cat")

    steps = query.delta(views, ["shop.orders", "shop.category"])
    assert steps is not None
    delta = steps.text
    assert ("shop_category_after" in delta) != ("shop_category_before" in delta)
    assert ("shop_orders_after" in delta) != ("shop_orders_before" in delta)
    only = query.delta(views, ["shop.category"])
    assert only is not None
    assert "shop_orders_delta" not in only.text


def test_groups_that_the_answer_names_are_compared_with_the_stored_rows() -> None:
    assert compiled("SELECT cat, sum(price) AS s FROM orders GROUP BY cat HAVING sum(price) > 3").reads_result
    assert not compiled("SELECT sum(amount) AS s FROM orders GROUP BY cat").reads_result


def test_the_windows_of_time_are_grouped_by() -> None:
    query = compiled("SELECT window(at, '1 hour') AS hour, count(*) AS n FROM orders GROUP BY window(at, '1 hour')")

    assert query.is_incremental
    assert "WINDOW(c7, '1 hour')" in query.full(views)


def test_operators_are_described_in_the_names_of_the_sources() -> None:
    query = compiled(
        "SELECT c.name, sum(o.amount * 2) AS s FROM orders o LEFT JOIN category c ON o.cat = c.cat"
        " WHERE o.id > 3 GROUP BY c.name HAVING count(*) > 1"
    )

    assert [(each.name, each.text, each.how) for each in query.operators] == [
        ("filter", "(COUNT(*)) > 1", "incremental"),
        ("aggregate", "SUM(orders.amount * 2), COUNT(*) by category.name", "recomputed"),
        ("filter", "orders.id > 3", "incremental"),
        ("outer join", "orders.cat = category.cat", "incremental"),
        ("scan", "shop.orders (id, cat, amount)", "incremental"),
        ("scan", "shop.category (cat, name)", "incremental"),
    ]


def test_a_doubled_quote_in_a_text_is_one_quote_as_in_spark() -> None:
    query = compile_query("SELECT id, 'it''s' AS a, \"a\"\"b\" AS b FROM orders", [ORDERS], database="shop")

    text = query.full(lambda table, _: table.replace(".", "_"))

    assert r"'it\'s'" in text
    assert "'a\"b'" in text


@pytest.mark.parametrize(
    ("window", "is_incremental"),
    [
        ("window(at, '1 hour')", True),
        ("window(at, '1 hour', '1 hour')", True),
        ("window(at, '1 hour', '1 hour', '5 minutes')", True),
        ("window(at, '1 hour', '30 minutes')", False),
        ("window(at, '1 hour', '60 minutes')", False),
        ("WINDOW(at, '1 hour', '2 hours', '5 minutes')", False),
    ],
)
def test_windows_that_overlap_or_leave_gaps_are_computed_in_full(window: str, is_incremental: bool) -> None:  # noqa: FBT001
    for text in (
        f"SELECT {window} AS w, count(*) AS n FROM orders GROUP BY {window}",
        f"SELECT id, {window}.start AS w FROM orders",
        f"SELECT w, count(*) AS n FROM (SELECT {window}.start AS w FROM orders) AS x GROUP BY w",
    ):
        assert compiled(text).is_incremental is is_incremental, text


@pytest.mark.parametrize(
    "day", ["DATE 'today'", "TIMESTAMP 'now'", "CAST(' Yesterday ' AS DATE)", "'tomorrow UTC'", "to_date('today')"]
)
def test_a_text_that_is_another_day_each_day_is_no_constant(day: str) -> None:
    assert not compiled(f"SELECT id FROM orders WHERE at = {day}").is_deterministic
    assert not compiled(f"SELECT id, {day} AS day FROM orders").is_deterministic


@pytest.mark.parametrize("text", ["'todays'", "'nowhere'", "'epoch'", "DATE '2026-01-01'", "'not today'"])
def test_other_texts_are_constants(text: str) -> None:
    assert compiled(f"SELECT id, {text} AS day FROM orders").is_deterministic
