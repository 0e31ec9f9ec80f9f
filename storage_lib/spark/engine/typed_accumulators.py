"""The accumulators of a query, typed by Spark once for each form of its sources."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from pyspark.sql.types import LongType, StructField, StructType

from storage_lib.io.environment import system_environment
from storage_lib.materialized.accumulators.accumulated_query import NULL_KEYS, AccumulatedQuery, refusal_of_keys
from storage_lib.materialized.algebra import Accumulators, ItemTypes, Moment, SourceTable
from storage_lib.schema.options.value_settings import unusual_value
from storage_lib.spark.engine.session_settings import unusual_setting
from storage_lib.spark.engine.source_views import source_views
from storage_lib.spark.tasks.active_session import active_session
from storage_lib.spark.types.spark_schema import arrow_schema_of, struct_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.materialized.sources.source_tables import BoundQuery

_TYPED_MAX = 256

_typed: OrderedDict[tuple[str, tuple[SourceTable, ...]], AccumulatedQuery | str] = OrderedDict()
_lock = threading.Lock()


def typed_accumulators(spark: SparkSession, bound: BoundQuery) -> AccumulatedQuery | str | None:
    """Return the accumulators of a query; None if its aggregates have none, or why its types rule them out.

    Spark types a query once for each form of its sources: that takes longer than a small refresh.
    """
    found = bound.compiled.accumulators
    if found is None or not bound.compiled.is_deterministic:
        return None
    reason = unusual_setting(spark) if bound.settings is None else unusual_value(bound.settings)
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
        reason = found.refusal(types) or refusal_of_keys([kind.simpleString() for _, kind in keys])
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
    return AccumulatedQuery(
        accumulators=found,
        types=types,
        state=arrow_schema_of(stored),
        type_names={field.name: field.dataType.simpleString() for field in stored.fields},
        form=f"{form} {stored.simpleString()}",
    )
