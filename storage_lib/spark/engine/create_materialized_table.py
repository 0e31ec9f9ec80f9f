"""``create_materialized_table``: a table with the columns of a query's answer, and the query in its options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.materialized.definition.create_materialized import create_materialized
from storage_lib.schema.options.materialized_table import RefreshMode
from storage_lib.spark.engine.spark_engine import SparkEngine
from storage_lib.spark.runtime.spark_session import session
from storage_lib.spark.versions.doubled_quotes import refuse_doubled_quotes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from pyspark.sql import SparkSession

    from storage_lib.catalog.catalog import Catalog
    from storage_lib.table.dynamic_table import DynamicTable


def create_materialized_table(
    catalog: Catalog,
    name: str,
    query: str,
    *,
    spark: SparkSession | None = None,
    primary_key: Sequence[str] | None = None,
    partition_keys: Sequence[str] = (),
    freshness: timedelta | str | None = None,
    refresh_mode: RefreshMode | str = RefreshMode.AUTO,
    options: Mapping[str, str] | None = None,
    comment: str | None = None,
    if_not_exists: bool = False,
    database: str | None = None,
    catalogs: Mapping[str, Mapping[str, str]] | None = None,
) -> DynamicTable:
    """Create a table whose rows are the answer of a query over tables of the catalog; it is empty until a ``refresh``.

        create_materialized_table(catalog, "shop.daily", "SELECT dt, sum(amount) AS turnover FROM orders GROUP BY dt")

    ``query`` is a SELECT in Spark's SQL; names without a database refer to ``database`` (default: that of ``name``). It
    is compiled and typed by ``spark`` (default: the running session, or a new one), but not run; all refreshes compute
    it under the settings that this session has now, such as its time zone. ``primary_key`` defaults to a key derived
    from the query, if its columns are never NULL; without one, the table counts equal rows. A refresh whose answer
    violates the key fails. ``freshness`` is the longest time that the table may lag behind its sources, as a duration
    or as text (``INTERVAL '5' MINUTE``, ``PT5M``), for schedulers; with ``DOWNSTREAM``, only refreshes of materialized
    tables that read it refresh it, before themselves. ``refresh_mode`` is ``auto``, ``incremental``, which refuses
    queries that can't be refreshed incrementally, or ``full``. With ``if_not_exists`` an
    existing table is returned unchanged.

    ``catalogs`` are the options of catalogs of Delta Lake and Iceberg, by name, whose tables the query names by three
    parts: those of CREATE CATALOG, such as ``{"lake": {"type": "delta", "warehouse": "s3://lake"}}``. The definition
    stores them, except secrets, which refreshes take from the environment (docs/incremental.md).

    Raises ``InvalidInputError`` for an invalid query, naming the place in it, and for options that would not keep the
    table equal to the answer; ``NotFoundError`` for a source that does not exist; otherwise as
    ``Catalog.create_table``.
    """
    refuse_doubled_quotes(name, query)
    return create_materialized(
        lambda: SparkEngine(spark or session()),
        catalog,
        name,
        query,
        primary_key=primary_key,
        partition_keys=partition_keys,
        freshness=freshness,
        refresh_mode=refresh_mode,
        options=options,
        comment=comment,
        if_not_exists=if_not_exists,
        database=database,
        catalogs=catalogs or {},
    )
