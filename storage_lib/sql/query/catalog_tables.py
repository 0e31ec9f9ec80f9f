"""Tables of the catalogs that a session opened (CREATE CATALOG), as data frames of one version."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from storage_lib.catalog.table_name import TableName
from storage_lib.errors import InvalidInputError
from storage_lib.lakes.lake_columns import columns_alone
from storage_lib.lakes.lake_version import AsOf
from storage_lib.spark.data_source import statement_options
from storage_lib.spark.lakes.lake_frame import lake_frame, lake_struct
from storage_lib.spark.reading.query_needs import TableNeeds, empty_relation
from storage_lib.spark.types.spark_schema import arrow_schema_of, struct_of
from storage_lib.sql.query.relations import BatchReads, Relation, as_of_options, snapshot_frame, with_computed_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from storage_lib.lakes.lake_version import LakeCatalog, LakeVersion
    from storage_lib.sql.state.session_catalogs import SessionCatalog
    from storage_lib.sql.state.session_state import SessionState
    from storage_lib.sql.text.query_tables import Query, TableReference
    from storage_lib.table.dynamic_table import DynamicTable


def struct_of_catalog_table(catalog: SessionCatalog, database: str, table: str) -> StructType:
    """Return the columns of a table's newest version. Raises ``NotFoundError`` if it does not exist."""
    if catalog.lake is not None:
        return lake_struct(catalog.lake.version(database, table))
    return struct_of(_paimon_table(catalog, database, table).schema)


def catalog_relation(
    state: SessionState, query: Query, reference: TableReference, batch: BatchReads
) -> Relation | None:
    """Return a table that a query names by three parts, the first of which is a catalog of the session; else None.

    A query reads one version of a table, however often it names it. Raises ``InvalidInputError`` for hints, and
    ``NotFoundError`` if the table does not exist.
    """
    catalog = state.session_catalog(reference.parts)
    if catalog is None:
        return None
    if reference.hint:
        message = f"{reference} is a table of catalog {catalog.name}; hints are for tables of {state.catalog_name}"
        raise InvalidInputError(message)
    options = {} if reference.as_of is None else as_of_options(state, reference.as_of)
    key = (*reference.parts, *options.items())
    _, database, table = reference.parts
    if catalog.lake is None:
        paimon = _paimon_table(catalog, database, table)
        df = with_computed_columns(state, snapshot_frame(state, paimon, query, options, batch), paimon, query)
        return Relation(df=df, name=".".join(reference.parts))
    if key not in batch.versions:
        version = _lake_version(catalog.lake, database, table, options)
        batch.versions[key] = version, lake_struct(version)
    return Relation(df=_lake_frame(state, *batch.versions[key], batch), name=".".join(reference.parts))


def _lake_frame(state: SessionState, version: LakeVersion, struct: StructType, batch: BatchReads) -> DataFrame:
    try:
        schema = columns_alone(arrow_schema_of(struct))
    except InvalidInputError:
        # A type or a name that our tables don't have: Spark can't tell what the query needs of it.
        return _empty(state, struct) if batch.is_shape else lake_frame(state.spark, version, struct)
    number = len(batch.schemas)
    batch.schemas[number] = schema
    if batch.is_shape:
        return empty_relation(state.spark, schema, number)
    needs = None if batch.needs is None else batch.needs.get(number, TableNeeds(frozenset(), None))
    if needs is None:
        return lake_frame(state.spark, version, struct)
    return lake_frame(state.spark, version, struct, needed=needs.columns, predicate=needs.predicate)


def _lake_version(lake: LakeCatalog, database: str, table: str, options: dict[str, str]) -> LakeVersion:
    number, millis = options.get(statement_options.SNAPSHOT_ID), options.get(statement_options.SCAN_TIMESTAMP_MILLIS)
    before = None if millis is None else datetime.fromtimestamp(int(millis) / 1000, UTC)
    tag = options.get(statement_options.TAG_NAME)
    return lake.version(database, table, AsOf(number=None if number is None else int(number), before=before, tag=tag))


def _paimon_table(catalog: SessionCatalog, database: str, table: str) -> DynamicTable:
    name = TableName.parse_plain(f"{database}.{table}")
    return catalog.paimon.load_table(str(name))  # type: ignore[union-attr]  # it is set where lake is not


def _empty(state: SessionState, struct: StructType) -> DataFrame:
    return state.spark.createDataFrame([], struct)
