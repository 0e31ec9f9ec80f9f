"""Materialized tables in a session: places of errors, stored definitions, and what EXPLAIN and DESCRIBE show."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from storage_lib import InvalidInputError, NotFoundError
from storage_lib.errors import StorageError
from storage_lib.schema.options.table_options import OWN_PREFIX

if TYPE_CHECKING:
    from storage_lib.schema.table_schema import TableSchema
    from storage_lib.sql import Session

ORDERS = "CREATE TABLE shop.orders (id BIGINT, item STRING, amount BIGINT, PRIMARY KEY (id) NOT ENFORCED)"
BY_ITEM = "SELECT item, count(*) AS orders, sum(amount) AS turnover FROM shop.orders GROUP BY item"


def run(sql: Session, *statements: str) -> None:
    for each in statements:
        sql.execute(each)


def rows(sql: Session, query: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in sql.execute(query).to_arrow().to_pylist())


def described(sql: Session, table: str) -> dict[str, str]:
    return {row["field"]: row["value"] for row in sql.execute(f"DESCRIBE EXTENDED {table}").to_arrow().to_pylist()}


def explained(sql: Session, table: str) -> str:
    return str(sql.execute(f"EXPLAIN REFRESH {table}").to_arrow()["plan"][0].as_py())


@pytest.mark.parametrize(
    ("query", "error", "line", "column", "problem"),
    [
        ("SELECT id\n  FROM ordrs", NotFoundError, 4, 8, "table shop.ordrs does not exist"),
        ("SELECT id,\n  amout FROM orders", InvalidInputError, 4, 3, "amout"),
        ("SELECT o.id,\n  o.amout FROM dynamic_tables . shop.orders o", InvalidInputError, 4, 3, "amout"),
        ("SELECT id\n  FROM orders VERSION AS OF 3", InvalidInputError, 4, 8, "follows the newest rows"),
        ("SELECT id\n  FROM orders$snapshots", InvalidInputError, 4, 8, "branch or a system table"),
        ("SELECT id,\n  nothing(id) AS n FROM orders", InvalidInputError, 4, 3, "nothing"),
        ("SELECT id,\n  id FROM orders", InvalidInputError, 3, 32, "two columns of the result are called id"),
        (
            "SELECT id FROM orders WHERE id IN (\n  SELECT id FROM `default`.orders)",
            NotFoundError,
            4,
            18,
            "default.orders",
        ),
    ],
)
def test_an_error_shows_its_place_in_the_script(
    sql: Session, query: str, error: type[StorageError], line: int, column: int, problem: str
) -> None:
    run(sql, ORDERS, "USE shop", "CREATE TABLE computed (id BIGINT, twice AS (id * 2))")

    with pytest.raises(error) as raised:
        list(sql.execute_script(f"USE shop;\n\nCREATE MATERIALIZED TABLE m AS {query}"))

    assert str(raised.value).startswith(f"line {line}, column {column}: ")
    assert problem in str(raised.value)
    assert sql.catalog.list_tables() == ["shop.computed", "shop.orders"]


def test_the_stored_query_does_not_depend_on_the_current_database(sql: Session) -> None:
    run(sql, ORDERS, "INSERT INTO shop.orders VALUES (1, 'pen', 2)", "USE shop")
    sql.execute("CREATE MATERIALIZED TABLE big AS SELECT orders.id FROM orders WHERE orders.id > 0")
    run(sql, "CREATE TABLE other.orders (id BIGINT)", "USE other", "INSERT INTO shop.orders VALUES (2, 'ink', 3)")

    sql.execute("ALTER MATERIALIZED TABLE shop.big REFRESH")

    assert rows(sql, "SELECT * FROM shop.big") == [(1,), (2,)]
    definition = sql.catalog.load_table("shop.big").definition
    assert definition is not None
    assert definition.query == "SELECT orders.id FROM `shop`.orders WHERE orders.id > 0"
    assert definition.sources == ("shop.orders",)


def test_the_result_of_a_refresh_names_its_snapshot_and_rows(sql: Session) -> None:
    run(sql, ORDERS, "INSERT INTO shop.orders VALUES (1, 'pen', 2), (2, 'ink', 3)")

    created = sql.execute(f"CREATE MATERIALIZED TABLE shop.by_item AS {BY_ITEM}")
    idle = sql.execute("ALTER MATERIALIZED TABLE shop.by_item REFRESH")
    run(sql, "INSERT INTO shop.orders VALUES (3, 'cup', 4)")
    refreshed = sql.execute("ALTER MATERIALIZED TABLE shop.by_item REFRESH")

    assert (created.snapshot_id, created.row_count) == (1, 2)
    assert (idle.snapshot_id, idle.row_count) == (None, None)
    assert (refreshed.snapshot_id, refreshed.row_count) == (2, 1)


def test_a_table_whose_first_refresh_fails_is_not_created(sql: Session) -> None:
    run(sql, ORDERS, "INSERT INTO shop.orders VALUES (1, 'pen', 2), (2, 'pen', 3)")

    with pytest.raises(InvalidInputError, match="pen"):
        sql.execute("CREATE MATERIALIZED TABLE m (PRIMARY KEY (item) NOT ENFORCED) AS SELECT item, id FROM shop.orders")

    assert sql.catalog.list_tables() == ["shop.orders"]


def test_a_failed_refresh_leaves_the_rows(sql: Session) -> None:
    run(sql, ORDERS, "INSERT INTO shop.orders VALUES (1, 'pen', 2)")
    run(sql, "CREATE MATERIALIZED TABLE m (PRIMARY KEY (item) NOT ENFORCED) AS SELECT item, id FROM shop.orders")
    run(sql, "INSERT INTO shop.orders VALUES (2, 'pen', 3)")

    with pytest.raises(InvalidInputError, match="pen"):
        sql.execute("ALTER MATERIALIZED TABLE m REFRESH")

    assert rows(sql, "SELECT item, id FROM m") == [("pen", 1)]


@pytest.mark.parametrize(
    "clauses",
    [
        "",
        "(PRIMARY KEY (item) NOT ENFORCED) COMMENT 'it''s; `x`' WITH ('bucket' = '3') FRESHNESS = INTERVAL '36' HOUR",
        "PARTITIONED BY (item) FRESHNESS = INTERVAL '2' DAY REFRESH_MODE = FULL",
    ],
)
def test_the_shown_statement_creates_an_equal_table(sql: Session, clauses: str) -> None:
    run(sql, ORDERS, "INSERT INTO shop.orders VALUES (1, 'pen', 2)")
    sql.execute(f"CREATE MATERIALIZED TABLE `odd-db`.`by-item` {clauses} AS {BY_ITEM}")
    before = comparable(sql.catalog.load_table("odd-db.by-item").schema)
    shown = sql.execute("SHOW CREATE MATERIALIZED TABLE `odd-db`.`by-item`").to_arrow()["statement"][0].as_py()
    sql.execute("DROP MATERIALIZED TABLE `odd-db`.`by-item`")

    sql.execute(shown)

    assert comparable(sql.catalog.load_table("odd-db.by-item").schema) == before
    again = sql.execute("SHOW CREATE TABLE `odd-db`.`by-item`").to_arrow()["statement"][0].as_py()
    assert again == shown


def comparable(schema: TableSchema) -> TableSchema:
    """Return the schema without the properties of a single table: its uuid and its time."""
    options = {key: value for key, value in schema.options.items() if key != f"{OWN_PREFIX}uuid"}
    return replace(schema, options=options, time_millis=0, id=0)


def test_explain_tells_the_next_refresh_without_running_it(sql: Session) -> None:
    run(sql, ORDERS, "INSERT INTO shop.orders VALUES (1, 'pen', 2)")
    run(sql, f"CREATE MATERIALIZED TABLE shop.by_item AS {BY_ITEM}")
    idle = explained(sql, "shop.by_item")
    run(sql, "INSERT INTO shop.orders VALUES (2, 'pen', 3)")
    waiting = explained(sql, "shop.by_item")
    snapshot = sql.catalog.load_table("shop.by_item").inspect.latest_snapshot_id()
    sql.execute("ALTER MATERIALIZED TABLE shop.by_item REFRESH")

    assert "nothing to do: no source has changed" in idle
    assert "shop.orders (item, amount): snapshot 1, the newest is snapshot 1" in idle
    assert "== Next refresh ==\nincremental\nby DuckDB in this process, if it is small\n" in waiting
    assert "shop.orders (item, amount): snapshot 1, the newest is snapshot 2\n" in waiting
    assert "FROM shop_orders_delta" in waiting.partition("== Delta ==")[2]
    assert snapshot == 1
    assert "snapshot 2, the newest is snapshot 2" in explained(sql, "shop.by_item")


def test_explain_names_the_reason_for_full_refreshes(sql: Session) -> None:
    run(sql, ORDERS, "INSERT INTO shop.orders VALUES (1, 'pen', 2)")
    sql.execute("CREATE MATERIALIZED TABLE newest AS SELECT id FROM shop.orders ORDER BY id DESC LIMIT 1 OFFSET 1")

    text = explained(sql, "newest")

    assert "only a full refresh is right: " in text
    assert "OFFSET" in text.partition("== Operators ==")[2]
    assert "== Delta ==" not in text


def test_describe_extended_shows_the_definition_and_the_last_refresh(sql: Session) -> None:
    run(sql, ORDERS, "INSERT INTO shop.orders VALUES (1, 'pen', 2)")
    sql.execute(f"CREATE MATERIALIZED TABLE m FRESHNESS = INTERVAL '90' MINUTE AS {BY_ITEM}")
    run(
        sql, "ALTER TABLE m COMPACT", "ALTER MATERIALIZED TABLE m SUSPEND", "INSERT INTO shop.orders VALUES (2, 'a', 1)"
    )

    told = described(sql, "m")

    assert told["kind"] == "materialized table"
    assert told["query"] == BY_ITEM
    assert told["sources"] == "shop.orders"
    assert told["freshness"] == "90 MINUTE"
    assert (told["refresh mode"], told["refresh status"]) == ("auto", "suspended")
    assert told["last refresh"].startswith("snapshot 1 at ")
    assert told["source shop.orders"] == "snapshot 1, the newest is snapshot 2"
    sql.execute("DROP TABLE shop.orders")
    assert described(sql, "m")["source shop.orders"] == "does not exist"


def test_a_stream_can_read_a_materialized_table_but_not_write_it(sql: Session, warehouse: str) -> None:
    run(sql, ORDERS, "INSERT INTO shop.orders VALUES (1, 'pen', 2), (2, 'ink', 3)")
    run(sql, f"CREATE MATERIALIZED TABLE m (PRIMARY KEY (item) NOT ENFORCED) AS {BY_ITEM}")
    run(sql, "CREATE TABLE copy (item STRING, turnover BIGINT, PRIMARY KEY (item) NOT ENFORCED)")
    run(sql, "UPDATE shop.orders SET item = 'pen' WHERE id = 2", "ALTER MATERIALIZED TABLE m REFRESH")
    run(sql, "SET 'execution.runtime-mode' = 'streaming'")
    run(sql, f"SET 'execution.checkpointing.dir' = '{warehouse}/checkpoints'", "SET 'table.dml-sync' = 'true'")

    with pytest.raises(InvalidInputError, match="m is a materialized table"):
        sql.execute("INSERT INTO m SELECT item, 1L, 1L FROM copy")
    with pytest.raises(InvalidInputError, match="m is a materialized table"):
        sql.execute("EXPLAIN INSERT INTO m SELECT item, 1L, 1L FROM copy")
    sql.execute("INSERT INTO copy /*+ OPTIONS('available-now' = 'true') */ SELECT item, turnover FROM m")

    run(sql, "RESET 'execution.runtime-mode'")
    assert rows(sql, "SELECT * FROM copy") == [("pen", 5)]


def test_a_materialized_table_reads_another_one(sql: Session) -> None:
    run(sql, ORDERS, "INSERT INTO shop.orders VALUES (1, 'pen', 2), (2, 'ink', 3)")
    run(sql, f"CREATE MATERIALIZED TABLE shop.by_item AS {BY_ITEM}")
    run(sql, "CREATE MATERIALIZED TABLE shop.total AS SELECT sum(turnover) AS turnover FROM shop.by_item")
    run(sql, "DELETE FROM shop.orders WHERE id = 1")

    run(sql, "ALTER MATERIALIZED TABLE shop.by_item REFRESH", "ALTER MATERIALIZED TABLE shop.total REFRESH")

    assert rows(sql, "SELECT * FROM shop.total") == [(3,)]


def test_a_damaged_table_can_still_be_dropped(sql: Session, warehouse: str) -> None:
    run(sql, ORDERS, f"CREATE MATERIALIZED TABLE m AS {BY_ITEM}")
    (Path(warehouse) / "default.db" / "m" / "schema" / "schema-1").write_bytes(b"no schema")

    assert sql.execute("DROP TABLE m").message == "table default.m dropped"


def test_a_refresh_continues_after_a_rollback_a_rescale_and_a_rename(sql: Session) -> None:
    run(sql, ORDERS, "INSERT INTO shop.orders VALUES (1, 'pen', 2)")
    run(sql, f"CREATE MATERIALIZED TABLE shop.m (PRIMARY KEY (item) NOT ENFORCED) AS {BY_ITEM}")
    run(sql, "INSERT INTO shop.orders VALUES (2, 'ink', 3)", "ALTER MATERIALIZED TABLE shop.m REFRESH")

    run(sql, "CALL sys.rollback_to('shop.m', snapshot => 1)")
    rolled_back = rows(sql, "SELECT * FROM shop.m")
    again = sql.execute("ALTER MATERIALIZED TABLE shop.m REFRESH").message
    run(sql, "ALTER TABLE shop.m SET ('bucket' = '3')", "ALTER TABLE shop.m RENAME TO kept")
    run(sql, "DELETE FROM shop.orders WHERE id = 1")
    after = sql.execute("ALTER MATERIALIZED TABLE shop.kept REFRESH").message

    assert rolled_back == [("pen", 1, 2)]
    assert again.startswith("shop.m: incremental refresh, ")
    assert after.startswith("shop.kept: incremental refresh, ")
    assert rows(sql, "SELECT * FROM shop.kept") == [("ink", 1, 3)]


def test_a_dropped_table_keeps_no_snapshots_of_its_sources(sql: Session) -> None:
    run(sql, ORDERS, "INSERT INTO shop.orders VALUES (1, 'pen', 2)", f"CREATE MATERIALIZED TABLE m AS {BY_ITEM}")
    kept = rows(sql, "SELECT next_snapshot_id FROM shop.orders$consumers")

    sql.execute("DROP MATERIALIZED TABLE m")

    assert kept == [(1,)]
    assert rows(sql, "SELECT next_snapshot_id FROM shop.orders$consumers") == []


def test_a_query_that_reads_its_own_table_through_another_is_refused(sql: Session) -> None:
    run(sql, ORDERS, f"CREATE MATERIALIZED TABLE a AS {BY_ITEM}", "CREATE MATERIALIZED TABLE b AS SELECT item FROM a")

    with pytest.raises(
        InvalidInputError, match=r"line 1, column 78: .* reads default.b, and default.b reads default.a"
    ):
        sql.execute("ALTER MATERIALIZED TABLE a AS SELECT item, 1L AS orders, 1L AS turnover FROM b")
