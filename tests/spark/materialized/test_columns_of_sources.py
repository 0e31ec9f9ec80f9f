"""Columns that are added to a source change no table whose query has a star, until it is given its query again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib.errors import InvalidInputError
from storage_lib.materialized.plan.refresh_result import RefreshWork
from storage_lib.schema.evolution.schema_changes import AddColumn, RemoveOption
from storage_lib.schema.options.materialized_table import COLUMNS_OPTION
from storage_lib.spark import create_materialized_table, refresh, set_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.catalog.catalog import Catalog
    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = pytest.mark.spark

STARS = {
    "star": ("SELECT * FROM t", ["id", "v"]),
    "star of a table": ("SELECT t.*, u.w FROM t JOIN u ON t.id = u.id", ["id", "v", "w"]),
    "star inside": ("SELECT * FROM (SELECT *, count(*) OVER (PARTITION BY v) AS n FROM t)", ["id", "v", "n"]),
    "natural join": ("SELECT v, w FROM t NATURAL JOIN u", ["v", "w"]),
    "union": ("SELECT * FROM t UNION ALL SELECT id, w FROM u", ["id", "v"]),
    "whole": ("SELECT *, rand() < 0 AS never FROM t", ["id", "v", "never"]),
}


@pytest.fixture(autouse=True)
def t(catalog: Catalog) -> DynamicTable:
    table = catalog.create_table("shop.t", {"id": "BIGINT NOT NULL", "v": "STRING"}, primary_key=["id"])
    table.append([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
    other = catalog.create_table("shop.u", {"id": "BIGINT NOT NULL", "w": "STRING"}, primary_key=["id"])
    other.append([{"id": 1, "w": "x"}])
    return table


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", STARS)
def test_a_star_stands_for_the_columns_at_the_time_of_its_definition(
    spark: SparkSession, catalog: Catalog, t: DynamicTable, name: str
) -> None:
    query, columns = STARS[name]
    table = create_materialized_table(catalog, "shop.answer", query, spark=spark)
    refresh(spark, table)
    before = table.refresh().to_arrow()

    t.alter(AddColumn("w", "STRING")).append([{"id": 3, "v": "a", "w": "new"}])
    refresh(spark, table)
    after = table.refresh().to_arrow()
    refresh(spark, table, full=True)

    assert before.column_names == after.column_names == columns
    assert after.num_rows == before.num_rows + (0 if "JOIN" in query else 1)
    assert sorted(map(repr, table.refresh().to_arrow().to_pylist())) == sorted(map(repr, after.to_pylist()))


def test_the_same_query_again_takes_the_new_columns(spark: SparkSession, catalog: Catalog, t: DynamicTable) -> None:
    table = create_materialized_table(catalog, "shop.answer", "SELECT * FROM t", spark=spark)
    refresh(spark, table)
    t.alter(AddColumn("w", "STRING")).append([{"id": 3, "v": "a", "w": "new"}])

    altered = set_query(table, "SELECT * FROM t", spark=spark)
    result = refresh(spark, altered)

    assert result.mode is RefreshWork.FULL
    assert [row["w"] for row in altered.refresh().to_arrow().sort_by("id").to_pylist()] == [None, None, "new"]


def test_a_star_without_recorded_columns_says_how_to_take_a_new_one(
    spark: SparkSession, catalog: Catalog, t: DynamicTable
) -> None:
    table = create_materialized_table(catalog, "shop.answer", "SELECT * FROM t", spark=spark)
    older = table.alter(RemoveOption(COLUMNS_OPTION))
    t.alter(AddColumn("w", "STRING")).append([{"id": 3, "v": "a", "w": "new"}])

    with pytest.raises(InvalidInputError, match="to take a new column"):
        refresh(spark, older)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT v COLLATE UTF8_LCASE AS c FROM t",
        "SELECT collate(v, 'UNICODE') AS c FROM t",
        "SELECT array(v COLLATE UTF8_LCASE) AS c FROM t",
    ],
)
def test_a_column_with_a_collation_is_refused_for_that_reason(
    spark: SparkSession, catalog: Catalog, query: str
) -> None:
    with pytest.raises(InvalidInputError, match=r"column c of its query is .*collate .* COLLATE UTF8_BINARY AS c"):
        create_materialized_table(catalog, "shop.answer", query, spark=spark)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) AS n FROM t GROUP BY CAST(v AS STRING COLLATE UTF8_LCASE)",
        "SELECT count(*) AS n FROM t GROUP BY v COLLATE UTF8_LCASE",
    ],
)
def test_groups_by_a_collation_are_computed_as_a_whole(
    spark: SparkSession, catalog: Catalog, t: DynamicTable, query: str
) -> None:
    table = create_materialized_table(catalog, "shop.answer", query, spark=spark)
    refresh(spark, table)
    t.append([{"id": 3, "v": "A"}])

    result = refresh(spark, table)

    assert "COLLATE" in result.reason
    assert sorted(row["n"] for row in table.refresh().to_arrow().to_pylist()) == [1, 2]
