"""Parsing of statements about materialized tables, without Spark and without a catalog."""

from __future__ import annotations

import pickle
from datetime import timedelta

import pytest

from storage_lib.errors import SqlSyntaxError
from storage_lib.schema.options.materialized_table import TargetLag
from storage_lib.sql import parse, statements_of
from storage_lib.sql.statements.materialized_statements import (
    AlterMaterializedTable,
    CreateMaterializedTable,
    DropMaterializedTable,
    ExplainRefresh,
    MaterializedChange,
    Refresh,
    Resume,
    SetFreshness,
    SetQuery,
    SetRefreshMode,
    ShowCreateMaterializedTable,
    ShowMaterializedTables,
    Suspend,
)
from storage_lib.sql.statements.parts import PartitionClause
from storage_lib.sql.text.qualified_query import in_place, qualified
from storage_lib.sql.text.source_text import SourceText


def created(text: str) -> CreateMaterializedTable:
    statement = parse(text)
    assert isinstance(statement, CreateMaterializedTable)
    return statement


def changed(text: str) -> MaterializedChange:
    statement = parse(f"ALTER MATERIALIZED TABLE shop.daily {text}")
    assert isinstance(statement, AlterMaterializedTable)
    assert str(statement.table) == "shop.daily"
    return statement.change


def test_every_clause_of_create_is_read() -> None:
    statement = created(
        "CREATE MATERIALIZED TABLE IF NOT EXISTS shop.daily (CONSTRAINT k PRIMARY KEY (dt, item) NOT ENFORCED)\n"
        "COMMENT 'by day' PARTITIONED BY (dt) WITH ('bucket' = '2') FRESHNESS = INTERVAL '5' MINUTE\n"
        "REFRESH_MODE = incremental AS WITH o AS (SELECT * FROM orders) SELECT dt, item, count(*) AS n FROM o"
    )

    assert str(statement.table) == "shop.daily"
    assert statement.primary_key == ("dt", "item")
    assert statement.partition_by == ("dt",)
    assert statement.options == {"bucket": "2"}
    assert statement.comment == "by day"
    assert statement.freshness == timedelta(minutes=5)
    assert statement.refresh_mode == "incremental"
    assert statement.if_not_exists
    assert [str(each) for each in statement.query.tables] == ["orders"]
    assert statement.query.text.startswith("WITH o AS (")
    assert pickle.loads(pickle.dumps(statement)) == statement  # noqa: S301  our own bytes


def test_only_the_name_and_the_query_are_required() -> None:
    statement = created("CREATE MATERIALIZED TABLE t AS SELECT 1 AS one")

    assert (statement.primary_key, statement.partition_by, statement.options) == ((), (), {})
    assert (statement.freshness, statement.refresh_mode, statement.if_not_exists) == (None, "auto", False)


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ("INTERVAL '30' SECOND", timedelta(seconds=30)),
        ("INTERVAL '1' MINUTE", timedelta(minutes=1)),
        ("interval 2 hours", timedelta(hours=2)),
        ("INTERVAL '7 days'", timedelta(days=7)),
    ],
)
def test_freshness_is_a_number_of_one_unit(interval: str, expected: timedelta) -> None:
    assert changed(f"SET FRESHNESS = {interval}") == SetFreshness(freshness=expected)


def test_a_lag_may_be_that_of_the_tables_that_read_it() -> None:
    assert created("CREATE MATERIALIZED TABLE t TARGET_LAG = downstream AS SELECT 1").freshness is TargetLag.DOWNSTREAM
    assert changed("SET TARGET_LAG = DOWNSTREAM") == SetFreshness(freshness=TargetLag.DOWNSTREAM)


def test_every_change_is_read() -> None:
    assert changed("REFRESH") == Refresh()
    assert changed("REFRESH PARTITION (dt = '2024-05-14')") == Refresh(
        partition=PartitionClause(values={"dt": "2024-05-14"})
    )
    assert changed("SUSPEND") == Suspend()
    assert changed("RESUME") == Resume()
    assert changed("SET REFRESH_MODE = FULL") == SetRefreshMode(refresh_mode="full")
    query = changed("AS SELECT * FROM orders")
    assert isinstance(query, SetQuery)
    assert query.query.text == "SELECT * FROM orders"


def test_the_other_statements_are_read() -> None:
    drop, quiet = parse("DROP MATERIALIZED TABLE t"), parse("DROP MATERIALIZED TABLE IF EXISTS t")
    show, all_of = parse("SHOW MATERIALIZED TABLES IN shop LIKE 'd*'"), parse("SHOW MATERIALIZED TABLES")
    create, explain = parse("SHOW CREATE MATERIALIZED TABLE t"), parse("EXPLAIN REFRESH shop.t")

    assert isinstance(drop, DropMaterializedTable)
    assert isinstance(quiet, DropMaterializedTable)
    assert (drop.if_exists, quiet.if_exists) == (False, True)
    assert show == ShowMaterializedTables(database="shop", pattern="d*")
    assert all_of == ShowMaterializedTables()
    assert isinstance(create, ShowCreateMaterializedTable)
    assert isinstance(explain, ExplainRefresh)
    assert str(explain.table) == "shop.t"


@pytest.mark.parametrize(
    ("text", "line", "column", "problem"),
    [
        (
            "CREATE MATERIALIZED TABLE t\nREFRESH_MODE = FULL\nFRESHNESS = INTERVAL '1' DAY AS SELECT 1",
            *(3, 1, "FRESHNESS has to precede REFRESH_MODE"),
        ),
        ("CREATE MATERIALIZED TABLE t COMMENT 'a' COMMENT 'b' AS SELECT 1", 1, 41, "COMMENT is given twice"),
        (
            "CREATE MATERIALIZED TABLE t FRESHNESS = INTERVAL '1' DAY TARGET_LAG = DOWNSTREAM AS SELECT 1",
            *(1, 58, "FRESHNESS and TARGET_LAG = DOWNSTREAM exclude each other"),
        ),
        (
            "CREATE MATERIALIZED TABLE t TARGET_LAG = INTERVAL '1' DAY AS SELECT 1",
            *(1, 42, "invalid TARGET_LAG; write TARGET_LAG = DOWNSTREAM, or FRESHNESS ="),
        ),
        ("CREATE MATERIALIZED TABLE t TARGET_LAG = UPSTREAM AS SELECT 1", 1, 42, "invalid TARGET_LAG"),
        ("CREATE MATERIALIZED TABLE t FRESHNESS INTERVAL '1' DAY AS SELECT 1", 1, 39, "expected '=', found 'INTERVAL'"),
        ("CREATE MATERIALIZED TABLE t FRESHNESS = INTERVAL '0' DAY AS SELECT 1", 1, 41, "invalid FRESHNESS"),
        ("CREATE MATERIALIZED TABLE t FRESHNESS = INTERVAL '-1' DAY AS SELECT 1", 1, 41, "invalid FRESHNESS"),
        ("CREATE MATERIALIZED TABLE t FRESHNESS = INTERVAL '1' YEAR AS SELECT 1", 1, 41, "invalid FRESHNESS"),
        ("CREATE MATERIALIZED TABLE t FRESHNESS = INTERVAL '1 2' DAY AS SELECT 1", 1, 41, "invalid FRESHNESS"),
        ("CREATE MATERIALIZED TABLE t FRESHNESS = INTERVAL '²' DAY AS SELECT 1", 1, 41, "invalid FRESHNESS"),
        (
            "CREATE MATERIALIZED TABLE t FRESHNESS = INTERVAL '99999999999' DAY AS SELECT 1",
            1,
            41,
            "the longest is 36500",
        ),
        ("CREATE MATERIALIZED TABLE t REFRESH_MODE = FUL AS SELECT 1", 1, 44, "did you mean 'FULL'?"),
        ("CREATE MATERIALIZED TABLE t REFRESH_MODE = CONTINUOUS AS SELECT 1", 1, 44, "as CONTINUOUS does in Flink"),
        ("CREATE MATERIALIZED TABLE t (a INT) AS SELECT 1 AS a", 1, 30, "the query gives the columns"),
        ("CREATE MATERIALIZED TABLE t (b AS (a)) AS SELECT 1 AS a", 1, 30, "the query gives the columns"),
        (
            "CREATE MATERIALIZED TABLE t (PRIMARY KEY (a) NOT ENFORCED, PRIMARY KEY (b) NOT ENFORCED) AS SELECT 1",
            *(1, 60, "a table has one primary key"),
        ),
        ("CREATE MATERIALIZED TABLE t (PRIMARY KEY (a)) AS SELECT 1 AS a", 1, 45, "expected NOT ENFORCED"),
        ("CREATE MATERIALIZED TABLE t", 1, 28, "the statement ends where"),
        ("CREATE MATERIALIZED TABLE t AS DELETE FROM a", 1, 32, "expected"),
        ("CREATE MATERIALIZED VIEW t AS SELECT 1", 1, 21, "expected TABLE, found 'VIEW'"),
        ("ALTER MATERIALIZED TABLE t STOP", 1, 28, "expected AS, REFRESH, RESUME, SET or SUSPEND"),
        ("ALTER MATERIALIZED TABLE t SET FRESHNES = INTERVAL '1' DAY", 1, 32, "did you mean FRESHNESS?"),
    ],
)
def test_an_error_shows_the_place_in_the_statement(text: str, line: int, column: int, problem: str) -> None:
    with pytest.raises(SqlSyntaxError) as raised:
        parse(text)

    assert str(raised.value).startswith(f"line {line}, column {column}: ")
    assert problem in str(raised.value)


@pytest.mark.parametrize(
    "word", ["materialized", "freshness", "target_lag", "refresh_mode", "refresh", "suspend", "resume"]
)
def test_the_words_of_materialized_tables_are_names_elsewhere(word: str) -> None:
    for text in ("CREATE TABLE word (word INT)", "DROP TABLE word", "SELECT word FROM word"):
        parse(text.replace("word", word))


@pytest.mark.parametrize(
    ("query", "stored"),
    [
        ("SELECT * FROM orders", "SELECT * FROM `s`.orders"),
        ("SELECT * FROM shop.orders o", "SELECT * FROM shop.orders o"),
        ("SELECT o.id FROM `the cat`.shop.`order``s` AS o", "SELECT o.id FROM `shop`.`order``s` AS o"),
        (
            "SELECT a.x, shop.b.y FROM a /* all */ JOIN shop.b ON a.x = shop.b.x",
            "SELECT a.x, b.y FROM `s`.a /* all */ JOIN shop.b ON a.x = b.x",
        ),
        (
            "WITH a AS (SELECT * FROM a), b AS (SELECT * FROM a)\nSELECT * FROM b, (SELECT 1 FROM c)",
            "WITH a AS (SELECT * FROM `s`.a), b AS (SELECT * FROM a)\nSELECT * FROM b, (SELECT 1 FROM `s`.c)",
        ),
        ("SELECT 1 AS one", "SELECT 1 AS one"),
    ],
)
def test_a_stored_query_names_its_tables_in_full(query: str, stored: str) -> None:
    assert qualified(created(f"CREATE MATERIALIZED TABLE t AS {query}").query, "s") == stored


def test_a_query_at_its_place_has_the_positions_of_the_script() -> None:
    script = "SELECT 1;\n  CREATE MATERIALIZED TABLE t AS\n  SELECT x\n  FROM `the cat` . shop.orders"
    _, second = statements_of(script)
    statement = parse(second.text, first_line=second.first_line)
    assert isinstance(statement, CreateMaterializedTable)

    placed = in_place(statement.query, SourceText(text=second.text, first_line=second.first_line))

    assert placed == "\n" + " " * 32 + "\n  SELECT x\n  FROM " + " " * 12 + "shop.orders"
    assert len(placed.splitlines()[3]) == len(script.splitlines()[3])
