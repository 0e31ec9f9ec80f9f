"""Statements of a query's accumulators with Spark's types, and the columns of the table that stores the state.

The state has a primary key: the keys of the groups, and ``null_keys``, a number whose bits say which of them are NULL.
A key that is NULL is stored as its type's default value, because columns of a primary key hold no NULL.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from storage_lib.duckdb.not_in_process import NotInProcessError
from storage_lib.io.environment import system_environment
from storage_lib.materialized.algebra import Accumulators, ItemTypes, Moment, SourceTable
from storage_lib.spark.materialized.source_views import source_views
from storage_lib.spark.materialized.value_settings import unusual_setting
from storage_lib.spark.tasks.active_session import active_session
from storage_lib.spark.types.predicate_column import quoted
from storage_lib.spark.types.spark_schema import struct_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.spark.materialized.source_tables import BoundQuery

NULL_KEYS = "null_keys"
_MOST_KEYS = 60
_TYPED_MAX = 256
_DEFAULTS: Mapping[type[DataType], str] = {
    BooleanType: "false",
    ByteType: "0",
    ShortType: "0",
    IntegerType: "0",
    LongType: "0",
    DecimalType: "0",
    StringType: "",
    DateType: "1970-01-01",
    TimestampType: "1970-01-01 00:00:00",
    TimestampNTZType: "1970-01-01 00:00:00",
}
"""Types of keys whose values are equal for Spark exactly if they are equal as a primary key."""

_typed: OrderedDict[tuple[str, tuple[SourceTable, ...]], AccumulatedQuery | str] = OrderedDict()
_lock = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccumulatedQuery:
    """Accumulators of one query. ``form`` is equal for states whose columns have the same meaning."""

    accumulators: Accumulators
    types: Mapping[str, ItemTypes]
    state: StructType
    form: str

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The primary key of the table that stores the state."""
        return (NULL_KEYS, *self.accumulators.key_columns)

    def stored(self, rows: DataFrame) -> DataFrame:
        """Return rows of a state as they are stored, without NULL in keys."""
        fields = {field.name: field.dataType for field in self.state.fields}
        keys = self.accumulators.key_columns
        bits = [sql.when(quoted(key).isNull(), 1 << at).otherwise(0) for at, key in enumerate(keys)]
        mask = reduce(lambda one, other: one + other, bits, sql.lit(0)).cast("bigint").alias(NULL_KEYS)
        values = [
            sql.coalesce(quoted(key), sql.lit(default_of(fields[key])).cast(fields[key])).alias(key) for key in keys
        ]
        return rows.select(mask, *values, *self.accumulators.columns[len(keys) :])

    def restored(self, rows: DataFrame) -> DataFrame:
        """Return stored rows with the NULLs of keys."""
        keys = self.accumulators.key_columns
        values = [
            sql.when(sql.col(NULL_KEYS).bitwiseAND(1 << at) == 0, quoted(key)).alias(key) for at, key in enumerate(keys)
        ]
        return rows.select(*values, *self.accumulators.columns[len(keys) :])


def accumulated_query(spark: SparkSession | None, bound: BoundQuery) -> AccumulatedQuery | str | None:
    """Return the accumulators of a query; None if its aggregates have none, or why its types rule them out.

    Spark types a query once for each form of its sources: that takes longer than a small refresh. Raises
    ``NotInProcessError`` without a session.
    """
    found = bound.compiled.accumulators
    if found is None or not bound.compiled.is_deterministic:
        return None
    if spark is None:
        raise NotInProcessError("Spark finds the types of accumulators")
    reason = unusual_setting(spark)
    if reason is not None:
        return reason
    query = (bound.compiled.tables.query, bound.described)
    with _lock:
        known = _typed.get(query)
    if known is None:
        known = _of_types(spark, bound, found)
        with _lock:
            _typed[query] = known
            while len(_typed) > _TYPED_MAX:
                _typed.popitem(last=False)
    return known


def _of_types(spark: SparkSession, bound: BoundQuery, found: Accumulators) -> AccumulatedQuery | str:
    def empty(source: str, _: Moment) -> DataFrame:
        return spark.createDataFrame([], struct_of(bound.sources[source].schema))

    with active_session(spark), source_views(spark, system_environment().new_name(), empty) as views:
        known = {field.name: field.dataType for field in spark.sql(found.typed(views)).schema.fields}
        types = {
            name: ItemTypes(known[f"argument_{name}"].simpleString(), known[f"value_{name}"].simpleString())
            for name in found.item_names
        }
        keys = [(key, known[key]) for key in found.key_columns]
        reason = found.refusal(types) or _of_keys(keys)
        if reason is not None:
            return reason
        state = spark.sql(found.whole(views, types)).schema
    stored = StructType(
        [
            StructField(NULL_KEYS, LongType(), nullable=False),
            *(StructField(name, kind, nullable=False) for name, kind in keys),
            *state.fields[len(keys) :],
        ]
    )
    form = found.whole(lambda table, _: table, types)
    return AccumulatedQuery(accumulators=found, types=types, state=stored, form=f"{form} {stored.simpleString()}")


def default_of(kind: DataType) -> str:
    """Return the value, as text, that stands for NULL in a key of this type."""
    return _DEFAULTS[type(kind)]


def _of_keys(keys: list[tuple[str, DataType]]) -> str | None:
    if len(keys) > _MOST_KEYS:
        return f"more than {_MOST_KEYS} keys"
    for _, kind in keys:
        if type(kind) not in _DEFAULTS or (isinstance(kind, StringType) and kind != StringType()):
            return f"keys of type {kind.simpleString().upper()}"
    return None
