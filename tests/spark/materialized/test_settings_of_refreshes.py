"""A materialized table is refreshed under the settings of the session that gave it its query, in whatever session."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from storage_lib.duckdb.small_refresh import small_refresh
from storage_lib.errors import InvalidInputError
from storage_lib.materialized.plan.refresh_result import RefreshEngine, RefreshWork
from storage_lib.schema.evolution.schema_changes import RemoveOption
from storage_lib.schema.options.materialized_table import SETTINGS_OPTION
from storage_lib.spark import create_materialized_table, read, refresh, set_query
from storage_lib.spark.engine.session_settings import settings_of, with_settings
from tests.support.deep_tests import thinned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.catalog.catalog import Catalog
    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = pytest.mark.spark

COLUMNS = {"id": "BIGINT NOT NULL", "v": "STRING", "m": "DECIMAL(20,10)", "at": "TIMESTAMP_LTZ(6)"}
BY_DAY = "SELECT CAST(at AS DATE) AS day, count(*) AS n FROM t GROUP BY CAST(at AS DATE)"
JOIN = "SELECT x.id AS i, z.id AS k FROM t x, t y RIGHT JOIN t z ON y.id = z.id + 1"
SETS = "SELECT id FROM t WHERE id = 1 UNION ALL SELECT id FROM t INTERSECT SELECT id FROM t WHERE id = 2"
CASES = [
    ("spark.sql.session.timeZone", "America/New_York", BY_DAY),
    ("spark.sql.ansi.enabled", "false", "SELECT id, CAST(v AS INT) AS i FROM t"),
    ("spark.sql.decimalOperations.allowPrecisionLoss", "false", "SELECT id, m * m * m AS x FROM t"),
    ("spark.sql.caseSensitive", "true", "SELECT id, v FROM t"),
    ("spark.sql.legacy.setopsPrecedence.enabled", "true", SETS),
    ("spark.sql.ansi.relationPrecedence", "true", JOIN),
    ("spark.sql.ansi.doubleQuotedIdentifiers", "true", 'SELECT id, "v" AS w FROM t'),
    ("spark.sql.parser.escapedStringLiterals", "true", r"SELECT id, v RLIKE '^\d+$' AS is_number FROM t"),
    ("spark.sql.timestampType", "TIMESTAMP_NTZ", "SELECT id, CAST('2024-01-01 02:00:00' AS TIMESTAMP) AS x FROM t"),
    ("spark.sql.legacy.exponentLiteralAsDecimal.enabled", "true", "SELECT id, 1e3 / 7 AS x FROM t"),
]


QUICK = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.legacy.setopsPrecedence.enabled")
ALL = [pytest.param(*case, is_stored) for is_stored in (True, False) for case in CASES]


def row(number: int) -> dict[str, Any]:
    at = datetime(2024, 1, 1, 2, number % 60, tzinfo=UTC)
    return {"id": number, "v": str(number) if number % 2 else "x", "m": Decimal(number) / 8, "at": at}


@pytest.fixture
def rows(catalog: Catalog) -> DynamicTable:
    table = catalog.create_table("shop.t", COLUMNS, primary_key=["id"])
    table.append([row(number) for number in range(1, 4)])
    return table


def other_session(spark: SparkSession, **settings: str) -> SparkSession:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    for name, value in settings.items():
        session.conf.set(name, value)
    return session


def content(table: DynamicTable) -> Counter[str]:
    return Counter(repr(tuple(each.values())) for each in table.refresh().to_arrow().to_pylist())


def answer(spark: SparkSession, rows: DynamicTable, query: str) -> Counter[str]:
    read(spark, rows.refresh()).createOrReplaceTempView("t")
    return Counter(repr(tuple(each.values())) for each in spark.sql(query).toArrow().to_pylist())


@pytest.mark.parametrize(
    ("name", "value", "query", "is_stored"),
    thinned(ALL, lambda case: case.values[0] in QUICK and case.values[3] is (case.values[0] != QUICK[0])),
)
def test_refreshes_in_sessions_with_other_settings_give_the_answer_of_the_first(
    spark: SparkSession, catalog: Catalog, rows: DynamicTable, name: str, value: str, query: str, *, is_stored: bool
) -> None:
    unusual, usual = other_session(spark, **{name: value}), other_session(spark)
    creating, refreshing = (unusual, usual) if is_stored else (usual, unusual)
    if not is_stored and name == "spark.sql.ansi.enabled":
        query = query.replace("CAST", "TRY_CAST")
    table = create_materialized_table(catalog, "shop.answer", query, spark=creating)
    refresh(creating, table)
    rows.append([row(number) for number in range(4, 7)])

    refresh(refreshing, table)
    assert content(table) == answer(creating, rows, query)
    refresh(refreshing, table, full=True)
    assert content(table) == answer(creating, rows, query)
    assert refreshing.conf.get(name) != creating.conf.get(name)


def test_the_query_given_again_takes_the_settings_of_its_session(
    spark: SparkSession, catalog: Catalog, rows: DynamicTable
) -> None:
    new_york = other_session(spark, **{"spark.sql.session.timeZone": "America/New_York"})
    table = create_materialized_table(catalog, "shop.answer", BY_DAY, spark=other_session(spark))
    refresh(new_york, table)

    altered = set_query(table, BY_DAY, spark=new_york)
    result = refresh(other_session(spark), altered)

    assert (result.mode, result.reason) == (RefreshWork.FULL, "the query was changed")
    assert content(table) == answer(new_york, rows, BY_DAY)


def test_a_table_without_stored_settings_is_refreshed_under_those_of_the_session(
    spark: SparkSession, catalog: Catalog, rows: DynamicTable
) -> None:
    new_york = other_session(spark, **{"spark.sql.session.timeZone": "America/New_York"})
    table = create_materialized_table(catalog, "shop.answer", BY_DAY, spark=other_session(spark))
    older = table.alter(RemoveOption(SETTINGS_OPTION))

    refresh(new_york, older)

    assert content(older) == answer(new_york, rows, BY_DAY)


def test_duckdb_computes_what_was_defined_under_usual_settings_in_any_session(
    spark: SparkSession, catalog: Catalog, rows: DynamicTable
) -> None:
    query = "SELECT id, v FROM t"
    usual, unusual = other_session(spark), other_session(spark, **{"spark.sql.ansi.enabled": "false"})
    table = create_materialized_table(catalog, "shop.usual", query, spark=usual)
    other = create_materialized_table(catalog, "shop.unusual", query, spark=unusual)

    assert refresh(unusual, table).engine is RefreshEngine.DUCKDB
    assert small_refresh(other) is None
    assert refresh(usual, other).engine is RefreshEngine.SPARK
    assert content(table) == content(other) == answer(usual, rows, query)


def test_a_session_with_the_stored_settings_is_used_itself(spark: SparkSession) -> None:
    session = other_session(spark)

    assert with_settings(session, settings_of(session)) is session
    assert settings_of(with_settings(session, (("spark.sql.session.timeZone", "Asia/Tokyo"),))) == (
        ("spark.sql.session.timeZone", "Asia/Tokyo"),
    )


def test_a_stored_setting_that_spark_refuses_is_an_error_of_the_definition(spark: SparkSession) -> None:
    with pytest.raises(InvalidInputError, match="refuses the stored setting"):
        with_settings(spark, (("spark.sql.session.timeZone", "Atlantis"),))
