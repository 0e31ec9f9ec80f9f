"""Rows of the state of accumulators as data frames, as they are computed and as they are stored."""

from __future__ import annotations

from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.errors import PySparkException
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_schema

from storage_lib.file_store.commit_message import BATCH_COMMIT_IDENTIFIER
from storage_lib.materialized.accumulators.accumulated_query import NULL_KEYS, default_of
from storage_lib.materialized.accumulators.accumulated_state import (
    NamedState,
    UnreadableStateError,
    begin_state,
    readable_state,
)
from storage_lib.materialized.algebra import ROW_COUNT
from storage_lib.schema.types.row_kind import RowKind
from storage_lib.spark.types.predicate_column import quoted
from storage_lib.spark.writing.commit_rows import commit_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from storage_lib.materialized.accumulators.accumulated_query import AccumulatedQuery
    from storage_lib.table.dynamic_table import DynamicTable


def struct_of_state(query: AccumulatedQuery) -> StructType:
    """Return the columns of the stored state."""
    return from_arrow_schema(query.state, prefer_timestamp_ntz=True)


def stored(query: AccumulatedQuery, rows: DataFrame) -> DataFrame:
    """Return rows of a state as they are stored, without NULL in keys."""
    keys = query.accumulators.key_columns
    bits = [sql.when(quoted(key).isNull(), 1 << at).otherwise(0) for at, key in enumerate(keys)]
    mask = reduce(lambda one, other: one + other, bits, sql.lit(0)).cast("bigint").alias(NULL_KEYS)
    values = [sql.coalesce(quoted(key), _default(query.type_names[key])).alias(key) for key in keys]
    return rows.select(mask, *values, *query.accumulators.columns[len(keys) :])


def _default(type_name: str) -> Column:
    return sql.lit(default_of(type_name)).cast(type_name)


def restored(query: AccumulatedQuery, rows: DataFrame) -> DataFrame:
    """Return stored rows with the NULLs of keys."""
    keys = query.accumulators.key_columns
    values = [
        sql.when(sql.col(NULL_KEYS).bitwiseAND(1 << at) == 0, quoted(key)).alias(key) for at, key in enumerate(keys)
    ]
    return rows.select(*values, *query.accumulators.columns[len(keys) :])


def commit_state_of(
    rows: DataFrame, table: DynamicTable, query: AccumulatedQuery, based_on: int, *, are_few: bool = False
) -> NamedState:
    """Write the new values of groups to a state, and delete groups without rows. ``are_few`` as for ``commit_rows``.

    Raises ``CommitConflictError`` if the state has changed since ``based_on``.
    """
    kind = sql.lit(RowKind.INSERT.symbol)
    if not query.accumulators.groups.is_global:
        kind = sql.when(sql.col(ROW_COUNT) != 0, kind).otherwise(RowKind.DELETE.symbol)
    changes = stored(query, rows).withColumn(table.options.row_kind_field, kind)
    begin = begin_state(table, based_on)
    snapshot = commit_rows(changes, table, begin, BATCH_COMMIT_IDENTIFIER, are_few=are_few)
    return NamedState(table, based_on if snapshot is None else snapshot.id)


@contextmanager
def state_readable_by_spark() -> Iterator[None]:
    """Raise ``UnreadableStateError`` for errors of reading a state in the body, also Spark's."""
    try:
        with readable_state():
            yield
    except (PySparkException, Py4JJavaError) as error:
        cause = error.java_exception if isinstance(error, Py4JJavaError) else error
        raise UnreadableStateError.of(cause) from error
