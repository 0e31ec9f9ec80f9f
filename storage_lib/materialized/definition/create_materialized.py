"""A materialized table is created: with the columns of a query's answer, and the query in its options."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.catalog.table_name import TableName
from storage_lib.errors import InvalidInputError
from storage_lib.materialized.definition.checked_definition import (
    answer_columns,
    checked_query,
    definition_for,
    refresh_mode_of,
)
from storage_lib.materialized.definition.unfit_options import unfit_option
from storage_lib.materialized.sources.catalogs_of_queries import catalogs_of_session
from storage_lib.materialized.sources.source_tables import with_columns
from storage_lib.schema.options.materialized_table import RefreshMode, parse_freshness
from storage_lib.schema.options.option_precedence import effective_options
from storage_lib.table.protocol.table_address import TableAddress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import timedelta

    from storage_lib.catalog.catalog import Catalog
    from storage_lib.materialized.engine import AnswerColumn, Engine
    from storage_lib.materialized.sources.catalogs_of_queries import Catalogs
    from storage_lib.materialized.sources.source_tables import BoundQuery
    from storage_lib.schema.options.materialized_table import MaterializedTableDefinition
    from storage_lib.schema.options.table_options import TableOptions
    from storage_lib.table.dynamic_table import DynamicTable


def create_materialized(
    engine: Callable[[], Engine],
    catalog: Catalog,
    name: str,
    query: str,
    *,
    primary_key: Sequence[str] | None,
    partition_keys: Sequence[str],
    freshness: timedelta | str | None,
    refresh_mode: RefreshMode | str,
    options: Mapping[str, str] | None,
    comment: str | None,
    if_not_exists: bool,
    database: str | None,
    catalogs: Catalogs = MappingProxyType({}),
) -> DynamicTable:
    """Create a table as ``storage_lib.spark.create_materialized_table`` does; ``engine`` types the answer."""
    table_name = TableName.parse_plain(name)
    if if_not_exists and catalog.table_exists(name):
        return catalog.load_table(name)
    definition = definition_for(
        name,
        query,
        database=database or table_name.database,
        freshness=parse_freshness(freshness),
        refresh_mode=refresh_mode_of(name, refresh_mode),
        catalogs=catalogs,
    )
    with catalogs_of_session(catalogs):
        return _created(
            engine,
            catalog,
            name,
            definition,
            primary_key=primary_key,
            partition_keys=partition_keys,
            options=options,
            comment=comment,
            if_not_exists=if_not_exists,
        )


def _created(
    engine: Callable[[], Engine],
    catalog: Catalog,
    name: str,
    definition: MaterializedTableDefinition,
    *,
    primary_key: Sequence[str] | None,
    partition_keys: Sequence[str],
    options: Mapping[str, str] | None,
    comment: str | None,
    if_not_exists: bool,
) -> DynamicTable:
    home = TableAddress(warehouse=catalog.warehouse, name=name, options=catalog.options)
    definition = with_columns(definition, checked_query(home, definition))  # before Spark starts
    typing = engine()
    definition = replace(definition, settings=typing.settings())
    bound = checked_query(home, definition)
    columns = answer_columns(typing, name, bound)
    key = tuple(primary_key) if primary_key else _derived_key(bound, columns, partition_keys)
    _refuse_options(name, effective_options(table=options or {}, connection=catalog.options))
    return catalog.create_table(
        name,
        # NOT NULL only in the key: later queries may have nulls in the others.
        pa.schema([each.field.with_nullable(each.field.name not in key) for each in columns]),
        primary_key=key,
        partition_by=partition_keys,
        options={**(options or {}), **definition.to_options()},
        comment=comment,
        if_not_exists=if_not_exists,
    )


def _derived_key(bound: BoundQuery, columns: Sequence[AnswerColumn], partition_keys: Sequence[str]) -> tuple[str, ...]:
    """Return the derived key with the partition keys; empty if it can't be a primary key.

    Columns of a primary key are NOT NULL, but a group of NULLs is a row of the answer. A primary key also needs a
    column that is not a partition key.
    """
    if not set(bound.compiled.key or ()) - set(partition_keys):
        return ()
    key = tuple(dict.fromkeys([*partition_keys, *(bound.compiled.key or ())]))
    nullable = {each.field.name for each in columns if each.field.nullable}
    return () if nullable.intersection(key) else key


def _refuse_options(name: str, options: TableOptions) -> None:
    """Refuse options under which the table would not hold exactly the rows that refreshes write."""
    option = unfit_option(options)
    if option is not None:
        message = (
            f"table {name}: option {option} does not fit a materialized table, whose rows have to be exactly those "
            "of its query's answer; leave it out"
        )
        raise InvalidInputError(message)
