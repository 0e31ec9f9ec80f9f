"""``set_query``: another query for a materialized table, whose answer Spark types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.materialized.definition.alter_materialized import set_query_by
from storage_lib.spark.engine.spark_engine import SparkEngine
from storage_lib.spark.runtime.spark_session import session
from storage_lib.spark.versions.doubled_quotes import refuse_doubled_quotes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from storage_lib.table.dynamic_table import DynamicTable


def set_query(
    table: DynamicTable,
    query: str,
    *,
    spark: SparkSession | None = None,
    database: str | None = None,
    catalogs: Mapping[str, Mapping[str, str]] | None = None,
) -> DynamicTable:
    """Set the query of a materialized table; the next refresh computes it in full. Returns the altered table.

    Refreshes compute it under the settings that ``spark`` has now, such as its time zone: the same query changes only
    these.

    The answer has the table's columns in their order and types, and may have further columns at the end, which are
    added. ``database`` is that of names without one (default: as before), and ``catalogs`` are those of
    ``create_materialized_table`` (default: as before). The table keeps its key.

    Raises ``InvalidInputError`` for an answer that does not fit, otherwise as ``create_materialized_table``.
    """
    refuse_doubled_quotes(table.name, query)
    return set_query_by(lambda: SparkEngine(spark or session()), table, query, database=database, catalogs=catalogs)
