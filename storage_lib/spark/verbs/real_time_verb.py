"""``write_stream(..., real_time=True)``: rows into the log of an eventual table by Spark's own Kafka sink.

Kafka ─▶ query ─▶ records (expressions of the JVM) ─▶ Spark's Kafka sink ─▶ log    milliseconds, at least once
driver thread: log ─▶ files     every log.tier-interval, once
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError
from storage_lib.spark.data_source.checkpoint_identity import settled_query_id
from storage_lib.spark.data_source.stream_tiering import StreamTiering
from storage_lib.spark.stream.plan.kafka_partitions import CoresInUse, partitions_of, refuse_too_few_cores
from storage_lib.spark.stream.plan.real_time_query import refuse_interval, refuse_query, refuse_without_connector
from storage_lib.spark.stream.plan.write_plan import plan_of_write
from storage_lib.spark.stream.real_time_log import records_of, refuse_missing_topic, refuse_table, topic_options
from storage_lib.spark.types.spark_schema import check_write_schema
from storage_lib.spark.verbs.stream_settings import stream_start
from storage_lib.spark.verbs.table_stream import TableStream
from storage_lib.spark.versions.spark_feature import SparkFeature

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from storage_lib.table.dynamic_table import DynamicTable

_CHECKPOINT_SECONDS = 60.0
"""Default time between two checkpoints. Each one stops the stream for about 0.1 s, and rows that arrive then wait."""

_CORES = CoresInUse()


def start_real_time(
    df: DataFrame,
    table: DynamicTable,
    *,
    checkpoint_location: str,
    output_mode: str,
    trigger_seconds: float,
    available_now: bool,
    change_tracking: bool | None,
    query_name: str | None,
    compaction: bool | None,
    tier_interval_seconds: float | None,
    position_column: str | None,
) -> TableStream:
    """Start the stream. Arguments and errors as for ``write_stream``."""
    SparkFeature.REAL_TIME.require(f"table {table.name}", "Write without real_time=True")
    spark = df.sparkSession
    seconds = trigger_seconds or _CHECKPOINT_SECONDS
    _refuse_arguments(
        table.name,
        output_mode=output_mode,
        available_now=available_now,
        change_tracking=table.options.change_tracking if change_tracking is None else change_tracking,
        position_column=position_column,
    )
    refuse_table(table)
    refuse_without_connector(spark, table.name)
    refuse_interval(spark, table.name, seconds)
    refuse_query(df, table.name, output_mode=output_mode)
    _refuse_plan(df, table, change_tracking=change_tracking)
    check_write_schema(table.name, table.schema, df.schema, table.options.row_kind_field)
    records, options = records_of(df, table), topic_options(table)
    refuse_missing_topic(table)
    cores = partitions_of(df, table.name)
    clock = table.environment.clock
    refuse_too_few_cores(spark, table.name, clock, partitions=cores, in_use=_CORES.count())
    user = settled_query_id(spark, checkpoint_location, table)
    writer = records.writeStream.format("kafka").options(**options).outputMode("update")
    # pyspark's annotations lack this trigger.
    writer = writer.trigger(realTime=f"{round(seconds * 1000)} milliseconds")  # type: ignore[call-overload]
    if query_name is not None:
        writer = writer.queryName(query_name)
    start = stream_start(writer, records, checkpoint_location, available_now=False)

    def start_with_cores() -> StreamingQuery:
        query = start()
        _CORES.add(query, cores)
        return query

    # Spark's tasks hold their cores for the whole time between two checkpoints, so compaction can't be a Spark job.
    tiering = StreamTiering(
        table,
        user,
        interval_seconds=(
            table.options.log_tier_interval_ms / 1000 if tier_interval_seconds is None else tier_interval_seconds
        ),
        compacts=not table.options.write_only if compaction is None else compaction,
    )
    return TableStream(start_with_cores, table, user, None, tiering)


def _refuse_arguments(
    table: str, *, output_mode: str, available_now: bool, change_tracking: bool, position_column: str | None
) -> None:
    found = (
        ("output_mode='complete'" if output_mode == "complete" else "", "use 'append' or 'update'"),
        ("available_now=True" if available_now else "", "a real-time stream runs until it is stopped"),
        ("" if change_tracking else "change_tracking=False", "a real-time stream writes the log, and nothing else"),
        ("position_column" if position_column is not None else "", "rows are not sorted, but written as they come"),
    )
    for argument, why in found:
        if argument:
            message = f"table {table}: real_time=True doesn't go with {argument}: {why}"
            raise InvalidInputError(message)


def _refuse_plan(df: DataFrame, table: DynamicTable, *, change_tracking: bool | None) -> None:
    plan, _ = plan_of_write(df, table, change_tracking=change_tracking)
    if plan.needs_position:
        message = (
            f"table {table.name}: {plan.position_reason} may change the order of rows, of several changes of a key the "
            "last one counts, and real_time=True can't sort them. Leave it out of the query, or write without "
            "real_time=True"
        )
        raise InvalidInputError(message)
