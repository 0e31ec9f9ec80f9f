"""Untrusted SQL calls listed functions only, whatever a version of Spark knows, before Spark evaluates anything."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from storage_lib.catalog.open_catalog import open_catalog
from storage_lib.errors import InvalidInputError
from storage_lib.schema.filter.pure_functions import OPERATORS, PURE_FUNCTIONS, PURE_TABLE_FUNCTIONS
from storage_lib.spark import streaming_sink
from storage_lib.spark.runtime.allowed_text import refuse_expression, refuse_query
from storage_lib.spark.versions.spark_feature import installed_since
from storage_lib.sql import Session

pytestmark = [pytest.mark.spark, pytest.mark.integration]

REFUSED = {
    *("reflect", "java_method", "try_reflect", "python_worker_logs"),
    *("from_xml", "schema_of_xml", "to_xml", "from_avro", "to_avro", "schema_of_avro", "from_protobuf", "to_protobuf"),
    *("xpath", "xpath_boolean", "xpath_double", "xpath_float", "xpath_int", "xpath_long", "xpath_number"),
    *("xpath_short", "xpath_string", "input_file_name", "input_file_block_length", "input_file_block_start"),
}
"""Functions of Spark that read what their arguments name, call Java, or tell about the driver's files."""
QUERIES = [
    "SELECT a, sum(b) AS s FROM t WHERE c IN (1, 2) AND d LIKE 'x%' GROUP BY a HAVING count(*) > 1 ORDER BY a LIMIT 3",
    "WITH u AS (SELECT * FROM t) SELECT u.*, rank() OVER (PARTITION BY a ORDER BY b DESC) FROM u JOIN v USING (a)",
    "SELECT sum(a) OVER w FROM t WINDOW w AS (PARTITION BY b ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
    "SELECT CASE WHEN a <=> b THEN CAST(a AS STRING) ELSE b::STRING END, -a, ~a, a << 1, NOT a, a IS NOT TRUE FROM t",
    "SELECT (SELECT max(a) FROM u WHERE u.b = t.b), EXISTS (SELECT 1 FROM u), a IN (SELECT b FROM u) FROM t",
    "SELECT a FROM t UNION ALL SELECT a FROM u EXCEPT SELECT a FROM v INTERSECT SELECT a FROM w",
    "SELECT * FROM VALUES (1, 'a'), (2, upper('b')) AS v(x, y)",
    "SELECT * FROM t LATERAL VIEW OUTER explode(arr) e AS x",
    "SELECT * FROM t, LATERAL explode(arr) AS e(x)",
    "SELECT transform(arr, x -> x + 1), m['k'], arr[0], st.x, named_struct('a', 1).a FROM t TABLESAMPLE (10 PERCENT)",
    "SELECT * FROM t PIVOT (sum(a) FOR b IN (1, 2))",
    "SELECT first(a), last_value(a) IGNORE NULLS OVER (ORDER BY b), system.builtin.upper(c) FROM t",
    "SELECT extract(YEAR FROM d), trim(BOTH 'x' FROM s), d + INTERVAL '1' DAY, now(), s COLLATE UTF8_LCASE FROM t",
    "FROM t |> WHERE a > 1 |> AGGREGATE count(*) AS n GROUP BY b |> ORDER BY n |> LIMIT 3",
    "SELECT * EXCEPT (a) FROM t GROUP BY GROUPING SETS ((a, b), ())",
    "SELECT a FROM t DISTRIBUTE BY a SORT BY b",
    "SELECT a || '-' || b, to_json(struct(*)), current_path, c ILIKE ALL ('X%') FROM t",
    "FROM t |> AGGREGATE count(*) AS n GROUP BY 1",
]
if installed_since(4, 2):
    QUERIES.append("SELECT a, rank() OVER (ORDER BY b) FROM t QUALIFY a = 1")
if installed_since(4, 3):  # before, UNNEST was the name of a function, which no list has
    QUERIES.append("FROM t |> AGGREGATE count(*) AS n GROUP BY 1 |> JOIN UNNEST(array(1, 2)) AS u (x)")
CALLS = [
    "from_xml('<r/>', 'a STRING', map('rowValidationXSDPath', 'http://127.0.0.1:9/x.xsd'))",
    "XPATH_string('<r/>', 'r')",
    "`schema_of_xml`('<r/>')",
    "system.builtin.xpath('<r/>', 'r')",
    "IDENTIFIER('upper')('x')",
    "from_avro(x'00', '\"string\"', map('avroSchemaUrl', 'http://127.0.0.1:9'))",
    "a_function_of_a_newer_spark('x')",
    "somebody.upper('x')",
    "input_file_name()",
]
PLACES = [
    "SELECT {call}",
    "SELECT * FROM t WHERE coalesce({call}, 'x') = 'x'",
    "SELECT * FROM VALUES ({call})",
    "SELECT sum(1) OVER w FROM t WINDOW w AS (PARTITION BY {call})",
    "SELECT sum(a) FILTER (WHERE {call} = 'x') FROM t",
    "SELECT listagg(a) WITHIN GROUP (ORDER BY {call}) FROM t",
    "SELECT transform(array(1), x -> {call})",
    "WITH u AS (SELECT 1 WHERE EXISTS (SELECT {call})) SELECT 1",
    "SELECT * FROM t JOIN u ON {call} = 'x' ORDER BY {call} LIMIT 1",
    "SELECT 1 LIMIT length({call})",
    "SELECT * FROM t TIMESTAMP AS OF {call}",
    "SELECT a FROM t GROUP BY GROUPING SETS ((a), ({call}))",
    "FROM t |> EXTEND {call} AS x",
    "SELECT * FROM range(length({call}))",
]


def test_each_function_of_spark_is_listed_or_refused(spark: SparkSession) -> None:
    state: Any = spark._jsparkSession.sessionState()  # type: ignore[attr-defined, unused-ignore]

    def builtin(registry: Any) -> set[str]:
        found = registry.listFunction()
        names = [found.apply(index) for index in range(found.size())]
        return {each.funcName() for each in names if each.database().isEmpty() or each.database().get() == "builtin"}

    scalar, tables = builtin(state.functionRegistry()), builtin(state.tableFunctionRegistry())

    assert (scalar & REFUSED) - {"python_worker_logs"}
    assert scalar - REFUSED - PURE_FUNCTIONS - OPERATORS == set(), "list new functions as pure, or here as refused"
    assert tables - REFUSED - PURE_TABLE_FUNCTIONS == set(), "list new functions as pure, or here as refused"
    assert not REFUSED & (PURE_FUNCTIONS | PURE_TABLE_FUNCTIONS)


@pytest.mark.parametrize("query", QUERIES)
def test_queries_over_tables_are_allowed(spark: SparkSession, query: str) -> None:
    refuse_query(spark, query)


@pytest.mark.parametrize("call", CALLS)
def test_a_function_that_is_not_listed_is_refused(spark: SparkSession, call: str) -> None:
    with pytest.raises(InvalidInputError, match="is not allowed"):
        refuse_query(spark, f"SELECT {call}")
    with pytest.raises(InvalidInputError, match="is not allowed"):
        refuse_expression(spark, f"upper({call}) || 'x'")


@pytest.mark.parametrize("place", PLACES)
def test_it_is_found_wherever_a_query_calls_it(spark: SparkSession, place: str) -> None:
    refuse_query(spark, place.format(call="upper('x')"))

    with pytest.raises(InvalidInputError, match="function xpath_string is not allowed"):
        refuse_query(spark, place.format(call="xpath_string('<r/>', 'r')"))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t WITH (`path` = '/etc')",
        "SELECT * FROM python_worker_logs()",
        "SELECT * FROM IDENTIFIER('te' || 'xt.`/x`')",
        "EXECUTE IMMEDIATE 'SELECT 1'",
        "BEGIN SELECT 1; END",
        "BEGIN DECLARE x INT; SELECT 1; DECLARE y INT; END",
        "SELECT TRANSFORM(a) USING 'cat' FROM t",
    ],
)
def test_other_ways_to_read_are_refused(spark: SparkSession, text: str) -> None:
    with pytest.raises(InvalidInputError, match="is not allowed"):
        refuse_query(spark, text)


def test_a_computed_column_is_not_read_by_untrusted_sql_if_it_calls_others(spark: SparkSession, tmp_path: Path) -> None:
    catalog = open_catalog(str(tmp_path / "tables"))
    shared = spark.newSession()
    with Session(shared, catalog) as author:
        author.execute("CREATE TABLE db.t (id BIGINT, s STRING, up AS (upper(s)), x AS (xpath_string(s, 'r')))")
        author.execute("INSERT INTO db.t VALUES (1, '<r>a</r>')")
    with Session(shared, catalog, restricted=True) as session:
        assert session.execute("SELECT id, up FROM db.t").to_arrow().to_pylist() == [{"id": 1, "up": "<R>A</R>"}]
        with pytest.raises(InvalidInputError, match="function xpath_string is not allowed"):
            session.execute("SELECT * FROM db.t").to_arrow()
        with pytest.raises(InvalidInputError, match="function from_xml is not allowed"):
            session.execute("SELECT from_xml(s, 'a STRING') AS a FROM db.t").to_arrow()


def test_an_expression_of_a_stream_is_refused_before_spark_analyses_it(spark: SparkSession) -> None:
    own = spark.newSession()
    spec: Any = SimpleNamespace(select=("id", "from_xml('<r/>', schema_of_xml('<r/>')) AS x"))

    with pytest.raises(InvalidInputError, match="is not allowed"):
        streaming_sink._selected(own.range(1), spec)
