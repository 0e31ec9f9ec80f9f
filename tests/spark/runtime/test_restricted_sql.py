"""Untrusted SQL reads tables, but reaches neither Java, programs, files nor the driver's environment."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from storage_lib.catalog.open_catalog import open_catalog
from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.spark.runtime import restricted_sql
from storage_lib.spark.runtime.restricted_sql import JAVA_CALLS, refuse_commands, refuse_statement, restrict_sql
from storage_lib.sql import Session

pytestmark = [pytest.mark.spark, pytest.mark.integration]


@pytest.fixture
def shared(spark: SparkSession) -> Iterator[SparkSession]:
    """Return the shared session and restore its settings; a new session would lack our formats."""
    names = ("spark.sql.runSQLOnFiles", "spark.sql.variable.substitute")
    before = {name: spark.conf.get(name) for name in names}
    yield spark
    for name, value in before.items():
        spark.conf.set(name, str(value))


@pytest.mark.parametrize("prefix", ["", "builtin.", "system.builtin."])
@pytest.mark.parametrize("name", JAVA_CALLS)
def test_no_expression_and_no_query_calls_java(spark: SparkSession, name: str, prefix: str) -> None:
    own = spark.newSession()
    call = f"{prefix}{name}('java.lang.System', 'getenv', 'PATH')"
    restrict_sql(own)
    restrict_sql(own)

    with pytest.raises(AnalysisException):
        own.sql(f"SELECT {call}")
    with pytest.raises(AnalysisException):
        own.range(1).selectExpr(call)
    assert own.sql("SELECT upper('x')").first() == ("X",)


def test_a_restriction_logs_no_error_and_others_are_logged_as_before(spark: SparkSession) -> None:
    logged: list[str] = []
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    own = spark.newSession()
    handler = logging.Handler()
    handler.emit = lambda record: logged.append(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)
    try:
        restrict_sql(own)
        before = list(logged)
        with pytest.raises(AnalysisException):
            own.sql("SELECT no_such_function(1)")
    finally:
        logger.removeHandler(handler)

    assert before == []
    assert len(logged) == 1


def test_a_spark_that_keeps_them_is_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restricted_sql, "_is_known", lambda _spark, _name: True)

    with pytest.raises(InvalidInputError, match="java_method cannot be removed"):
        restrict_sql(spark.newSession())


@pytest.mark.parametrize(
    "query",
    [
        "SELECT TRANSFORM(id) USING '{command}' AS (x) FROM (SELECT 1 AS id)",
        "FROM (SELECT 1 AS id) SELECT TRANSFORM(id) USING '{command}'",
        "SELECT * FROM (SELECT TRANSFORM(1) USING '{command}' AS (x)) UNION SELECT 'y'",
        "SELECT 1 WHERE EXISTS (SELECT TRANSFORM(1) USING '{command}' AS (x))",
        "SELECT coalesce((SELECT TRANSFORM(1) USING '{command}' AS (x)), 1)",
        "WITH a AS (SELECT TRANSFORM(1) USING '{command}' AS (x)) SELECT * FROM a",
        "WITH a AS (SELECT 1), b AS (SELECT TRANSFORM(1) USING '{command}' AS (x)) SELECT * FROM a",
        "SELECT * FROM db.t TIMESTAMP AS OF coalesce((SELECT TRANSFORM(1) USING '{command}' AS (x)), 1)",
    ],
)
def test_no_query_runs_a_program(shared: SparkSession, tmp_path: Path, query: str) -> None:
    done = tmp_path / "done"
    with Session(shared, open_catalog(str(tmp_path / "tables"))) as author:
        author.execute("CREATE TABLE db.t (id BIGINT)")
    with Session(shared, open_catalog(str(tmp_path / "tables")), restricted=True) as session:
        with pytest.raises(InvalidInputError, match="only read tables"):
            session.execute(query.format(command=f"touch {done}")).to_arrow()
        assert session.execute("SELECT count(*) AS n FROM db.t").to_arrow().to_pylist() == [{"n": 0}]

    assert not done.exists()


def test_no_expression_of_a_stream_runs_a_program(spark: SparkSession, tmp_path: Path) -> None:
    own = spark.newSession()
    restrict_sql(own)
    selected = own.range(1).selectExpr(f"(SELECT TRANSFORM(1) USING 'touch {tmp_path}/done' AS (x)) AS y")

    with pytest.raises(InvalidInputError, match="runs a program"):
        refuse_commands(selected)


def test_a_computed_column_of_a_table_runs_no_program(spark: SparkSession, tmp_path: Path) -> None:
    """A user who may create tables controls this expression."""
    own = spark.newSession()
    own.range(1).selectExpr(f"(SELECT TRANSFORM(1) USING 'touch {tmp_path}/done' AS (x)) AS y").createTempView("v")

    with pytest.raises(InvalidInputError, match="runs a program"):
        refuse_commands(own.sql("SELECT * FROM v"))


@pytest.mark.parametrize("text", ["SELECT '${{env:{name}}}'", "SELECT '${{system:user.home}}'", "SELECT '${{{name}}}'"])
def test_a_query_holds_no_variable_of_the_driver(shared: SparkSession, tmp_path: Path, text: str) -> None:
    query = text.format(name="PATH")
    with Session(shared, open_catalog(str(tmp_path)), restricted=True) as session:
        [row] = session.execute(query).to_arrow().to_pylist()

    assert list(row.values()) == [query.removeprefix("SELECT '").removesuffix("'")]


def test_a_hint_of_a_query_selects_snapshots_only(shared: SparkSession, tmp_path: Path) -> None:
    """A stream would write its state into a directory of the hint's choice."""
    with Session(shared, open_catalog(str(tmp_path / "tables"))) as author:
        author.execute("CREATE TABLE db.t (id BIGINT)")
    state = {"'scan.normalize.state-directory'": f"'{tmp_path}/state'", "'execution.runtime-mode'": "'streaming'"}
    with Session(shared, open_catalog(str(tmp_path / "tables")), restricted=True) as session:
        for hint in (state, {"'execution.runtime-mode'": "'streaming'"}, {"'table-storage.log.scan'": "'full'"}):
            given = ", ".join(f"{key} = {value}" for key, value in hint.items())
            with pytest.raises(InvalidInputError, match=r"is not allowed here; allowed are branch"):
                session.execute(f"SELECT * FROM db.t /*+ OPTIONS({given}) */").to_arrow()  # noqa: S608  the attack

    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("named", ["text.`{path}`", "IDENTIFIER('text.`{path}`')", "TEXT.`{path}`"])
def test_a_query_names_no_file(shared: SparkSession, tmp_path: Path, named: str) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hidden")
    table = named.format(path=secret)
    with (
        Session(shared, open_catalog(str(tmp_path / "tables")), restricted=True) as session,
        pytest.raises((InvalidInputError, NotFoundError)),
    ):
        session.execute(f"SELECT * FROM {table}").to_arrow()  # noqa: S608  that is the attack
    own = shared.newSession()
    restrict_sql(own)
    with pytest.raises(AnalysisException):
        own.range(1).selectExpr(f"(SELECT max(value) FROM {table})")  # noqa: S608  likewise


@pytest.mark.parametrize(
    "text",
    [
        "ADD JAR '/tmp/x.jar'",
        "CREATE TEMPORARY FUNCTION f AS 'a.B' USING JAR '/tmp/x.jar'",
        "INSERT OVERWRITE DIRECTORY '{path}' USING text SELECT 'x'",
        "FROM (SELECT 'x' AS v) INSERT OVERWRITE DIRECTORY '{path}' USING text SELECT v",
        "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a",
        "SET spark.sql.runSQLOnFiles = true",
        "DROP TABLE t",
    ],
)
def test_what_is_more_than_a_query_is_refused_before_spark_runs_it(
    spark: SparkSession, tmp_path: Path, text: str
) -> None:
    own = spark.newSession()
    with pytest.raises(InvalidInputError, match="only read tables"):
        refuse_statement(own, text.format(path=tmp_path / "out"))
    with pytest.raises(ParseException):
        refuse_statement(own, "SELECT 1; DROP TABLE t")
    refuse_statement(own, "WITH a AS (SELECT 1 AS x) SELECT * FROM a JOIN b USING (x) WHERE x IN (SELECT y FROM c)")


def test_a_restricted_session_runs_queries_only(shared: SparkSession, tmp_path: Path) -> None:
    with Session(shared, open_catalog(str(tmp_path)), restricted=True) as session:
        for text in ("CREATE TABLE db.t (id BIGINT)", "SET 'a' = 'b'", "EXPLAIN SELECT 1"):
            with pytest.raises(InvalidInputError, match="only SELECT"):
                session.execute(text)
            with pytest.raises(InvalidInputError, match="only SELECT"):
                list(session.execute_script(text))
