"""Queries over tables whose rows are the union of several frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib import AddColumn, open_catalog
from storage_lib.spark.reading.united_frames import EXCLUDED_RULES, UNSAFE_RULE, leave_out_unsafe_rule
from storage_lib.sql import Session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "column",
    ["(SELECT max(o.v) FROM db.t o WHERE o.id = t.n)", "EXISTS (SELECT 1 FROM db.t o WHERE o.id = t.n)"],
    ids=["scalar", "exists"],
)
def test_a_correlated_sub_query_may_be_among_the_columns(
    spark: SparkSession, make_table: Callable[..., DynamicTable], column: str
) -> None:
    table = make_table(columns={"id": "BIGINT", "v": "STRING", "n": "INT"}, write_only="true")
    table.append([{"id": 1, "v": "a", "n": 2}])
    table = table.alter(AddColumn("later", "INT"))
    table.append([{"id": 2, "v": "b", "n": 3, "later": 1}])
    catalog = open_catalog(table.address.warehouse)

    with Session(spark, catalog, database="db") as sql:
        found = sql.execute(f"SELECT id, {column} AS found FROM db.t t ORDER BY id")  # noqa: S608  a test's text
        rows = found.to_arrow().to_pylist()

    assert [bool(row["found"]) for row in rows] == [True, False]


def test_rules_that_were_left_out_before_stay_left_out(spark: SparkSession) -> None:
    before = spark.conf.get(EXCLUDED_RULES, None)
    try:
        spark.conf.set(EXCLUDED_RULES, "a.Rule, another.Rule")
        leave_out_unsafe_rule(spark)
        leave_out_unsafe_rule(spark)

        assert spark.conf.get(EXCLUDED_RULES) == f"a.Rule,another.Rule,{UNSAFE_RULE}"
    finally:
        spark.conf.unset(EXCLUDED_RULES) if before is None else spark.conf.set(EXCLUDED_RULES, before)
