"""Needs of a batch query for each table: the columns, and a condition that its rows have to meet.

The query is analysed and optimised over empty relations of the tables' columns, so Spark itself moves conditions to
the tables and finds the columns that are used. Only then is a read planned.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import StructField, StructType

from storage_lib.schema.filter.predicate import Predicate
from storage_lib.spark.java.driver_java import driver_object
from storage_lib.spark.reading.file_relation import relation_of
from storage_lib.spark.types.java_filters import either, pruning_predicate
from storage_lib.spark.types.spark_schema import struct_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.schema.table_schema import TableSchema

NUMBER = "dynamic-table.number"
"""Option of an empty relation by which it is found in a plan."""


@dataclass(frozen=True, slots=True)
class TableNeeds:
    """``columns`` are the columns whose values are used; ``predicate`` holds for every row that matters (None: all)."""

    columns: frozenset[str]
    predicate: Predicate | None


def empty_relation(spark: SparkSession, schema: TableSchema, number: int) -> DataFrame:
    """Return a relation without rows that has a table's columns, to be found in a plan by its number.

    All columns are nullable: ``count(id)`` of a NOT NULL column would be simplified to ``count(1)``, which uses no
    column, but the real read has nulls in columns that are not used.
    """
    fields = [StructField(each.name, each.dataType) for each in struct_of(schema).fields]
    return relation_of(spark, [], StructType(fields), "parquet", {NUMBER: str(number)})


def needs_of(df: DataFrame, schemas: Mapping[int, TableSchema]) -> dict[int, TableNeeds]:
    """Return the needs of a query by the numbers of its empty relations; a table that is not read has no entry.

    Raises pyspark's exceptions for a query that Spark can't optimise.
    """
    found: dict[int, TableNeeds] = {}
    plan = df._jdf.queryExecution().optimizedPlan()  # noqa: SLF001  pyspark has no public way to plans
    # A relation is read at several places if the query names it in a subquery that Spark repeats.
    for place in json.loads(driver_object(df.sparkSession, "QueryNeeds").of(plan, NUMBER)):
        number = int(place["number"])
        needs = TableNeeds(frozenset(place["columns"]), pruning_predicate(place["filters"], schemas[number]))
        other = found.get(number)
        found[number] = needs if other is None else _together(needs, other)
    return found


def _together(one: TableNeeds, other: TableNeeds) -> TableNeeds:
    return TableNeeds(one.columns | other.columns, either(one.predicate, other.predicate))
