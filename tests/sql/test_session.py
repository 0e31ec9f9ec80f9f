"""Results of a session other than the rows of statements."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import ArithmeticException, NumberFormatException
from pyspark.sql import functions

from storage_lib import InvalidInputError, SqlSyntaxError, open_catalog
from storage_lib.spark import read, write
from storage_lib.sql import Session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_script_is_parsed_whole_before_its_first_statement_runs(sql: Session) -> None:
    with pytest.raises(SqlSyntaxError, match=r"^line 2, column 1: "):
        sql.execute_script("CREATE TABLE t (id BIGINT);\nSELEC 1;")
    assert sql.catalog.list_tables() == []

    results = sql.execute_script("CREATE TABLE t (id BIGINT);\n-- then\nSHOW TABLES;")
    assert sql.catalog.list_tables() == []
    assert next(results).message == "table default.t created"
    assert next(results).to_arrow().column("table").to_pylist() == ["t"]


def test_registered_views_are_read_by_bare_spark(sql: Session, spark: SparkSession) -> None:
    sql.execute("CREATE TABLE registered (id BIGINT, twice AS (id * 2))")
    sql.execute("CREATE TEMPORARY VIEW doubled AS SELECT twice FROM registered")
    assert sql.register_views() == ["doubled", "registered"]
    sql.execute("INSERT INTO registered VALUES (4)")

    rows = spark.sql("SELECT r.id, d.twice FROM registered r CROSS JOIN doubled d").collect()
    assert [tuple(row) for row in rows] == [(4, 8)]


def test_temporary_tables_go_with_their_session(spark: SparkSession, warehouse: str, tmp_path: Path) -> None:
    directory = tmp_path / "temporary"
    with Session(spark, open_catalog(warehouse), temporary_directory=str(directory)) as session:
        session.execute("CREATE TEMPORARY TABLE t (id BIGINT)")
        assert list(directory.rglob("schema-0"))
    assert not list(directory.rglob("schema-0"))
    assert not Path(warehouse).exists()


def test_sessions_do_not_share_settings_or_views(sql: Session, spark: SparkSession) -> None:
    other = Session(spark, sql.catalog, database="shop")
    sql.execute("SET 'execution.runtime-mode' = 'streaming'")
    sql.execute("CREATE TEMPORARY VIEW one AS SELECT 1 AS x")
    assert other.settings()["execution.runtime-mode"] == "batch"
    assert other.database == "shop"
    assert other.execute("SHOW VIEWS").to_arrow().num_rows == 0


def test_an_empty_database_names_the_others(sql: Session) -> None:
    assert sql.execute("SHOW TABLES").message == ""

    sql.execute("CREATE TABLE shop.t (id BIGINT)")

    told = "database default has no tables; other databases: shop (USE or SHOW TABLES IN)"
    assert sql.execute("SHOW TABLES").message == told
    assert sql.execute("SHOW TABLES IN shop LIKE 'x*'").message == ""


def test_a_write_tells_its_snapshot(sql: Session) -> None:
    created = sql.execute("CREATE TABLE t (id BIGINT, PRIMARY KEY (id) NOT ENFORCED)")
    assert (created.has_rows, created.snapshot_id, created.to_arrow().num_columns) == (False, None, 0)
    written = sql.execute("INSERT INTO t VALUES (1), (2)")
    assert (written.snapshot_id, written.row_count, written.stream) == (1, 2, None)


def test_an_insert_under_one_identity_is_made_once(sql: Session) -> None:
    sql.execute("CREATE TABLE t (id BIGINT)")
    insert = "INSERT INTO t /*+ OPTIONS('commit-user' = 'me', 'commit-identifier' = '7') */ VALUES (1)"
    assert sql.execute(insert).snapshot_id == sql.execute(insert).snapshot_id == 1
    assert sql.execute("SELECT * FROM t").to_arrow().num_rows == 1


def plan_of(sql: Session, query: str) -> str:
    return str(sql.execute(f"EXPLAIN {query}").to_arrow().column("plan")[0])


def test_only_the_columns_that_a_query_uses_are_read_of_rows_that_need_no_merge(sql: Session) -> None:
    sql.execute("CREATE TABLE t (a INT, b INT, c INT, d INT, s AS (a + c), PRIMARY KEY (a) NOT ENFORCED)")
    sql.execute("INSERT INTO t VALUES (1, 2, 3, 4), (5, 6, 7, 8)")

    wide, narrow, star = (
        plan_of(sql, query) for query in ("SELECT * FROM t", "SELECT B FROM t", "SELECT b FROM (SELECT * FROM t)")
    )

    assert "FileScan parquet [a#" in wide
    assert "FileScan parquet [b#" in narrow
    assert "c#" not in narrow
    assert "FileScan parquet [b#" in star
    assert "ReadSchema: struct<b:int>" in star
    assert "1 files" in star.partition("== Files ==")[2]
    assert "by Spark's readers, 0 files (0 bytes) by Python tasks" in star


def test_only_the_columns_that_a_query_uses_are_read_of_rows_that_are_merged(sql: Session) -> None:
    sql.execute("CREATE TABLE t (a INT, b INT, c INT, d INT, s AS (a + c), PRIMARY KEY (a) NOT ENFORCED)")
    sql.execute("INSERT INTO t VALUES (1, 2, 3, 4)")
    sql.execute("INSERT INTO t VALUES (1, 3, 3, 4)")

    wide, narrow, star, count = (
        plan_of(sql, query)
        for query in ("SELECT * FROM t", "SELECT B FROM t", "SELECT b FROM (SELECT * FROM t)", "SELECT count(*) FROM t")
    )

    assert re.search(r"MapInArrow MergeTasks\(.*\[a#", wide)
    assert all(re.search(r"MapInArrow MergeTasks\(.*\[b#", each) for each in (narrow, star))
    assert all("c#" not in each for each in (narrow, star, count))
    assert sql.execute("SELECT b FROM t").to_arrow().column("b").to_pylist() == [3]


def test_a_condition_of_a_query_leaves_out_files_before_it_runs(sql: Session) -> None:
    sql.execute("CREATE TABLE t (day STRING, a INT) PARTITIONED BY (day) WITH ('write-mode' = 'append-only')")
    sql.execute("INSERT INTO t VALUES ('mon', 1), ('tue', 2), ('wed', 3)")

    plan = plan_of(
        sql, "SELECT x.a FROM t AS x JOIN t AS y ON x.a = y.a WHERE x.day = 'tue' AND y.day IN ('mon', 'tue')"
    )

    assert "1 files" in plan.partition("== Files ==")[2].splitlines()[1]
    assert "2 files" in plan.partition("== Files ==")[2].splitlines()[2]


def test_a_query_reads_one_snapshot_of_a_table_that_it_names_twice(sql: Session) -> None:
    sql.execute("CREATE TABLE t (a INT, PRIMARY KEY (a) NOT ENFORCED)")
    sql.execute("INSERT INTO t VALUES (1)")
    result = sql.execute("SELECT count(*) AS n FROM t AS x CROSS JOIN t AS y")
    sql.execute("INSERT INTO t VALUES (2)")

    assert result.to_arrow().column("n").to_pylist() == [1]


def test_a_running_stream_is_the_statements_result(sql: Session, tmp_path: Path) -> None:
    sql.execute("CREATE TABLE a (id BIGINT, PRIMARY KEY (id) NOT ENFORCED)")
    sql.execute("CREATE TABLE b (id BIGINT, PRIMARY KEY (id) NOT ENFORCED)")
    sql.execute("INSERT INTO a VALUES (1)")
    sql.execute("SET 'execution.runtime-mode' = 'streaming'")
    sql.execute(f"SET 'execution.checkpointing.dir' = '{tmp_path}'")
    stream = sql.execute("INSERT INTO b /*+ OPTIONS('query-name' = 'mine') */ SELECT * FROM a").stream
    assert stream is not None
    try:
        assert (stream.isActive, stream.name) == (True, "mine")
        stream.processAllAvailable()
    finally:
        stream.stop()
    sql.execute("SET 'execution.runtime-mode' = 'batch'")
    assert sql.execute("SELECT * FROM b").to_arrow().column("id").to_pylist() == [1]


def test_a_table_in_memory_can_not_be_read_by_spark(spark: SparkSession) -> None:
    from storage_lib import MemoryCatalog

    session = Session(spark, MemoryCatalog({"log.system": "none"}))
    session.execute("CREATE TABLE t (id BIGINT)")
    with pytest.raises(InvalidInputError, match="exists in the memory of this process only"):
        session.execute("SELECT * FROM t")


def test_errors_of_bare_spark_stay_sparks_beside_a_session(sql: Session, spark: SparkSession) -> None:
    # PySpark uses its own type of logger for errors that show a piece of the statement.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.Logger.manager.loggerDict.pop(name, None)
    sql.execute("SELECT 1").to_arrow()

    with pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
        spark.sql("SELECT 1 / 0").collect()
    with pytest.raises(NumberFormatException, match="CAST_INVALID_INPUT"):
        spark.createDataFrame([("x",)], "v string").select(functions.col("v").cast("int")).collect()


def counted(session: Session, number: int) -> int:
    """Return the number of rows after one more was written."""
    session.execute(f"INSERT INTO t VALUES ({number})")  # noqa: S608
    return session.execute("SELECT * FROM t").to_arrow().num_rows


def in_a_thread(work: Callable[[], int]) -> int:
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(work).result()


def test_sessions_over_new_sessions_of_spark_run_in_any_thread(sql: Session, spark: SparkSession) -> None:
    sql.execute("CREATE TABLE t (id BIGINT)")
    other, third = spark.newSession(), spark.newSession()
    with Session(other, sql.catalog) as second:
        assert counted(second, 1) == 1
        assert in_a_thread(lambda: counted(second, 2)) == 2
    assert in_a_thread(lambda: counted(Session(third, sql.catalog), 3)) == 3
    assert in_a_thread(lambda: counted(sql, 4)) == 4
    assert counted(sql, 5) == 5


def test_a_data_frame_of_a_new_session_is_written_and_read_in_another_thread(sql: Session, spark: SparkSession) -> None:
    sql.execute("CREATE TABLE t (id BIGINT)")
    table, other = sql.catalog.load_table("default.t"), spark.newSession()
    assert in_a_thread(lambda: write(other.range(3), table).total_record_count or 0) == 3  # type: ignore[union-attr]
    assert in_a_thread(lambda: read(other, table).count()) == 3
