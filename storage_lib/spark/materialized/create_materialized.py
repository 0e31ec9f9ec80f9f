"""``create_materialized_table``: a table with the columns of a query's answer, and the query in its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sql

from storage_lib.catalog.table_name import TableName
from storage_lib.errors import InvalidInputError
from storage_lib.io.environment import system_environment
from storage_lib.materialized.algebra import Moment, tables_of
from storage_lib.schema.options.materialized_table import MaterializedTableDefinition, RefreshMode, parse_freshness
from storage_lib.schema.options.materialized_table import parse_refresh_mode as parsed_mode
from storage_lib.schema.options.option_precedence import effective_options
from storage_lib.schema.options.table_options import TableOptions
from storage_lib.spark.materialized.answer_columns import refusals_of_spark
from storage_lib.spark.materialized.source_tables import BoundQuery, bound_query
from storage_lib.spark.materialized.source_views import source_views
from storage_lib.spark.materialized.unfit_options import unfit_option
from storage_lib.spark.materialized.weighted_rows import WEIGHT, net_rows
from storage_lib.spark.runtime.spark_session import session
from storage_lib.spark.tasks.active_session import active_session
from storage_lib.spark.types.spark_schema import arrow_schema_of, struct_of
from storage_lib.table.protocol.table_address import TableAddress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

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
) -> DynamicTable:
    """Create a table whose rows are the answer of a query over tables of the catalog; it is empty until a ``refresh``.

        create_materialized_table(catalog, "shop.daily", "SELECT dt, sum(amount) AS turnover FROM orders GROUP BY dt")

    ``query`` is a SELECT in Spark's SQL; names without a database refer to ``database`` (default: that of ``name``). It
    is compiled and typed by ``spark`` (default: the running session, or a new one), but not run. ``primary_key``
    defaults to a key derived from the query, if its columns are never NULL; without one, the table counts equal rows.
    A refresh whose answer violates the key fails. ``freshness`` is the longest time that the table may lag behind its
    sources, as a duration or as text (``INTERVAL '5' MINUTE``, ``PT5M``), for schedulers. ``refresh_mode`` is ``auto``,
    ``incremental``, which refuses queries that can't be refreshed incrementally, or ``full``. With ``if_not_exists`` an
    existing table is returned unchanged.

    Raises ``InvalidInputError`` for an invalid query, naming the place in it, and for options that would not keep the
    table equal to the answer; ``NotFoundError`` for a source that does not exist; otherwise as
    ``Catalog.create_table``.
    """
    table_name = TableName.parse_plain(name)
    if if_not_exists and catalog.table_exists(name):
        return catalog.load_table(name)
    definition = definition_for(
        name,
        query,
        database=database or table_name.database,
        freshness=parse_freshness(freshness),
        refresh_mode=refresh_mode_of(name, refresh_mode),
    )
    bound = checked_query(TableAddress(warehouse=catalog.warehouse, name=name, options=catalog.options), definition)
    struct = answer_struct(spark or session(), name, bound)
    key = tuple(primary_key) if primary_key else _derived_key(bound, struct, partition_keys)
    _refuse_options(name, effective_options(table=options or {}, connection=catalog.options))
    return catalog.create_table(
        name,
        _columns(struct, key),
        primary_key=key,
        partition_by=partition_keys,
        options={**(options or {}), **definition.to_options()},
        comment=comment,
        if_not_exists=if_not_exists,
    )


def definition_for(
    name: str, query: str, *, database: str, freshness: timedelta | None, refresh_mode: RefreshMode
) -> MaterializedTableDefinition:
    """Return the definition of table ``name``; ``InvalidInputError`` for a query that is invalid or reads ``name``."""
    sources = tables_of(query, database=database)
    if name in sources:
        message = f"table {name}: its query reads {name} itself; a materialized table can't be its own source"
        raise InvalidInputError(message)
    return MaterializedTableDefinition(
        query=query.strip(), database=database, sources=sources, freshness=freshness, refresh_mode=refresh_mode
    )


def refresh_mode_of(name: str, given: RefreshMode | str) -> RefreshMode:
    """Parse a refresh mode; ``InvalidInputError`` for an unknown one."""
    try:
        return parsed_mode(given)
    except ValueError as error:
        message = f"table {name}: unknown refresh mode {given!r}; {error}"
        raise InvalidInputError(message) from error


def checked_query(home: TableAddress, definition: MaterializedTableDefinition) -> BoundQuery:
    """Compile a definition; also raise ``InvalidInputError`` if its refresh mode does not fit the query."""
    bound = bound_query(home, definition)
    compiled = bound.compiled
    if definition.refresh_mode is RefreshMode.INCREMENTAL and not (
        compiled.is_incremental and compiled.is_deterministic
    ):
        reason = compiled.reason or "the query is not deterministic"
        message = f"table {home.name}: refresh mode INCREMENTAL does not fit its query: {reason}. Use AUTO or FULL"
        raise InvalidInputError(message)
    return bound


def answer_struct(spark: SparkSession, name: str, bound: BoundQuery) -> StructType:
    """Return the columns of the answer, typed by Spark over empty sources, with their nullability.

    Raises ``InvalidInputError`` for a query that Spark refuses, and for an answer whose rows can't be compared.
    """

    def empty(source: str, _: Moment) -> DataFrame:
        return spark.createDataFrame([], struct_of(bound.sources[source].schema))

    token = system_environment().new_name()
    with active_session(spark), source_views(spark, token, empty) as views, refusals_of_spark(name):
        answer = spark.sql(bound.compiled.full(views, Moment.AFTER))
        net_rows(answer.withColumn(WEIGHT, sql.lit(1)))
    if WEIGHT in answer.columns:
        message = f"table {name}: column {WEIGHT} of its query is reserved for refreshes; give it another name"
        raise InvalidInputError(message)
    return answer.schema


def _derived_key(bound: BoundQuery, struct: StructType, partition_keys: Sequence[str]) -> tuple[str, ...]:
    """Return the derived key with the partition keys; empty if it can't be a primary key.

    Columns of a primary key are NOT NULL, but a group of NULLs is a row of the answer. A primary key also needs a
    column that is not a partition key.
    """
    if not set(bound.compiled.key or ()) - set(partition_keys):
        return ()
    key = tuple(dict.fromkeys([*partition_keys, *(bound.compiled.key or ())]))
    nullable = {field.name for field in struct.fields if field.nullable}
    return () if nullable.intersection(key) else key


def _columns(struct: StructType, key: Sequence[str]) -> pa.Schema:
    """Return the table's columns, NOT NULL only in the key: later queries may have nulls in the others."""
    return pa.schema([field.with_nullable(field.name not in key) for field in arrow_schema_of(struct)])


def _refuse_options(name: str, options: TableOptions) -> None:
    """Refuse options under which the table would not hold exactly the rows that refreshes write."""
    option = unfit_option(options)
    if option is not None:
        message = (
            f"table {name}: option {option} does not fit a materialized table, whose rows have to be exactly those "
            "of its query's answer; leave it out"
        )
        raise InvalidInputError(message)
