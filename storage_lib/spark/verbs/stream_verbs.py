"""``write_stream``: write a stream into a table exactly once per checkpoint, with compaction during the stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError
from storage_lib.spark.compaction.stream_compaction import StreamCompaction
from storage_lib.spark.data_source import statement_options
from storage_lib.spark.data_source.batch_sources import CheckpointSources
from storage_lib.spark.data_source.checkpoint_identity import QUERY_FILE, is_there, settled_query_id
from storage_lib.spark.data_source.stream_tiering import StreamTiering
from storage_lib.spark.data_source.table_source import register
from storage_lib.spark.stream.plan.applied_source import applied_options, refuse_unordered
from storage_lib.spark.stream.plan.stream_plan import StreamPlan
from storage_lib.spark.stream.plan.write_plan import prepared
from storage_lib.spark.stream.sink.sink_spec import OUTPUT_MODES
from storage_lib.spark.tasks.session_kind import refuse_connect
from storage_lib.spark.types.spark_schema import check_write_schema
from storage_lib.spark.verbs.applied_verb import start_applied
from storage_lib.spark.verbs.dataframe_verbs import write
from storage_lib.spark.verbs.real_time_verb import start_real_time
from storage_lib.spark.verbs.stream_settings import stream_start, triggered
from storage_lib.spark.verbs.table_stream import TableStream
from storage_lib.spark.writing.bucket_distribution import by_bucket, by_partition_and_bucket

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.sources.row_check import RowCheck


def write_stream(
    df: DataFrame,
    table: DynamicTable,
    *,
    checkpoint_location: str,
    output_mode: str = "append",
    trigger_seconds: float = 0.0,
    available_now: bool = False,
    change_tracking: bool | None = None,
    query_name: str | None = None,
    compaction: bool | None = None,
    compaction_interval_seconds: float = 10.0,
    tier_interval_seconds: float | None = None,
    position_column: str | None = None,
    real_time: bool = False,
    expect: RowCheck | None = None,
) -> TableStream:
    """Start writing a streaming data frame into the table; each micro-batch is one commit.

    ``output_mode`` ``append`` writes the rows by their kinds; ``update`` upserts changed results by the table's key;
    ``complete`` replaces the whole table in every micro-batch. With ``trigger_seconds`` 0, micro-batches follow each
    other without a pause; ``available_now`` ends the stream after the data that exists now. Compaction runs during the
    stream, unless the table is ``write-only`` or ``compaction`` is False. With ``log.consistency=eventual`` a
    micro-batch is in the log at least once, and the files follow every ``tier_interval_seconds`` (default:
    ``log.tier-interval``) and at the end of the stream.

    In ``append`` mode the snapshots store the offsets of the topics of ``read_changelog``, so that a rollback also
    rewinds them: a checkpoint from before the rollback is refused. The other modes, and streams into an eventual log,
    do not store them, and are refused if another writer has, because the topic's records would be added twice.

    Of several changes of a key in one micro-batch, the last one counts. If a join or a repartition may change their
    order, they are sorted by ``_row_position`` (``read_stream(..., has_position=True)``) or by ``position_column``, an
    integer column that increases with the changes of a key; without either, the write is refused. It is also refused if
    it needs the pre-image of each change and ``read_stream`` does not add it (``normalize``).

    ``real_time``: Spark's real-time mode with its own Kafka sink, for tables with ``log.consistency=eventual``. Each
    row is in the log milliseconds after Spark has read it from Kafka. ``trigger_seconds`` is then the time between two
    checkpoints (0: 60 s); after a crash, at most that long of the stream is written to the log again.

    The driver applies a stream of ``read_changelog(table=...)`` as ``ingest`` does, without a query. A micro-batch may
    be several commits, and each is followed by the compactions that are due. ``expect`` checks its new rows as in
    ``ingest``, on the driver.

    Where a busy machine does not start one of Spark's Python processes in time, the stream starts again from its
    checkpoint, up to five times in a row, with a warning in the log.

    Raises ``InvalidInputError``, before anything starts, for a data frame or a checkpoint that does not fit the table.
    """
    _check(df, table, checkpoint_location, output_mode)
    refuse_connect(
        df.sparkSession,
        "write_stream(...)",
        why="it reads Spark's plan of the query, to refuse one whose changes would make the table wrong",
        remedy='Use a classic session, or df.writeStream.format("dynamic_table"), which checks less',
    )
    applied = applied_options(df)
    if applied is not None:
        return start_applied(
            df,
            table,
            applied,
            checkpoint_location=checkpoint_location,
            output_mode=output_mode,
            trigger_seconds=trigger_seconds,
            available_now=available_now,
            change_tracking=change_tracking,
            query_name=query_name,
            compaction=compaction,
            position_column=position_column,
            real_time=real_time,
            expect=expect,
        )
    _refuse_check(table, expect)
    refuse_unordered(df, table)
    if real_time:
        return start_real_time(
            df,
            table,
            checkpoint_location=checkpoint_location,
            output_mode=output_mode,
            trigger_seconds=trigger_seconds,
            available_now=available_now,
            change_tracking=change_tracking,
            query_name=query_name,
            compaction=compaction,
            tier_interval_seconds=tier_interval_seconds,
            position_column=position_column,
        )
    plan = StreamPlan()
    if output_mode != "complete":
        df, plan = prepared(df, table, position_column=position_column, change_tracking=change_tracking)
    check_write_schema(table.name, table.schema, df.schema, table.options.row_kind_field)
    spark = df.sparkSession
    register(spark)
    user = settled_query_id(spark, checkpoint_location, table)
    if is_there(spark, checkpoint_location, QUERY_FILE):
        message = (
            f"table {table.name}: checkpoint {checkpoint_location} is of a stream whose query was kept up to date from "
            "commits; give this one a checkpoint of its own, and an empty table"
        )
        raise InvalidInputError(message)
    tracked = _is_tracked(table, change_tracking=change_tracking)
    past = _agreed_past(table, checkpoint_location, output_mode=output_mode, change_tracking=change_tracking)
    if output_mode == "append":
        options = statement_options.options_of(table) | {statement_options.COMMIT_USER: user}
        if plan.adds_up:
            options[statement_options.ADDS_UP] = "true"
        if change_tracking is not None:
            options[statement_options.CHANGE_TRACKING] = str(change_tracking).lower()
        distributed = by_bucket(df, table.schema) if tracked else by_partition_and_bucket(df, table.schema)
        writer = distributed.writeStream.format(statement_options.SOURCE_NAME).options(**options)
    else:
        if plan.adds_up:
            message = (
                f"table {table.name}: {plan.adds_up_reason}; such changes are written by output_mode='append', not by "
                f"{output_mode!r}"
            )
            raise InvalidInputError(message)
        writer = df.writeStream.outputMode(output_mode).foreachBatch(
            _commit_batch(table, output_mode, user, past, change_tracking=change_tracking)
        )
    if query_name is not None:
        writer = writer.queryName(query_name)
    writer = triggered(writer, trigger_seconds, available_now=available_now)
    compacts = compaction if compaction is not None else not table.options.write_only
    interval = table.options.log_tier_interval_ms / 1000 if tier_interval_seconds is None else tier_interval_seconds
    return TableStream(
        stream_start(writer, df, checkpoint_location, available_now=available_now),
        table,
        user,
        StreamCompaction(spark, table, interval_seconds=compaction_interval_seconds) if compacts else None,
        StreamTiering(table, user, interval_seconds=interval) if tracked and table.new_write().is_log_first else None,
    )


def _agreed_past(
    table: DynamicTable, checkpoint_location: str, *, output_mode: str, change_tracking: bool | None
) -> CheckpointSources | None:
    """Return the sources of a checkpoint; raise ``InvalidInputError`` if the table does not agree with them."""
    past = CheckpointSources.of(checkpoint_location, table.address.options)
    if past is None:
        return None
    if reports_sources(table, output_mode=output_mode, change_tracking=change_tracking):
        past.refuse_another_past(table)
    else:
        past.refuse_reported_sources(table)
    return past


def reports_sources(table: DynamicTable, *, output_mode: str, change_tracking: bool | None) -> bool:
    """Return whether the commits of a stream record the offsets of its sources."""
    tracked = _is_tracked(table, change_tracking=change_tracking)
    return output_mode == "append" and not (tracked and table.new_write().is_log_first)


def _is_tracked(table: DynamicTable, *, change_tracking: bool | None) -> bool:
    return table.log is not None and (table.options.change_tracking if change_tracking is None else change_tracking)


def _check(df: DataFrame, table: DynamicTable, checkpoint_location: str, output_mode: str) -> None:
    if not df.isStreaming:
        message = f"table {table.name}: this data frame is not a stream; use storage_lib.spark.write(df, table)"
        raise InvalidInputError(message)
    if output_mode not in OUTPUT_MODES:
        message = f"table {table.name}: unknown output_mode {output_mode!r}; use one of {', '.join(OUTPUT_MODES)}"
        raise InvalidInputError(message)
    if output_mode == "update" and not table.schema.primary_keys:
        message = f"table {table.name} has no primary key to update by; use output_mode='complete'"
        raise InvalidInputError(message)
    if not checkpoint_location:
        message = f"table {table.name}: a stream needs a checkpoint_location, a directory that no other stream uses"
        raise InvalidInputError(message)


def _refuse_check(table: DynamicTable, expect: RowCheck | None) -> None:
    if expect is not None:
        message = (
            f"table {table.name}: expect refuses records of a topic, and this stream is a query over rows. Use "
            "read_changelog(table=...), or filter the rows in the query"
        )
        raise InvalidInputError(message)


def _commit_batch(
    table: DynamicTable,
    output_mode: str,
    commit_user: str,
    past: CheckpointSources | None,
    *,
    change_tracking: bool | None,
) -> Callable[[DataFrame, int], None]:
    """Return a ``foreachBatch`` function that commits each micro-batch as a batch write under the batch's id.

    Spark does not support the modes ``update`` and ``complete`` for a Python stream writer.
    """

    def commit_batch(batch: DataFrame, batch_id: int) -> None:
        if table.new_write().committed(commit_user, batch_id) is not None:
            # A replayed batch writes nothing, but must be computed so that a stateful query's state reaches its end.
            batch.write.format("noop").mode("append").save()
            return
        if past is not None:
            past.refuse_reported_sources(table, batch_id)
        write(
            batch,
            table,
            mode="overwrite" if output_mode == "complete" else "append",
            partition={} if output_mode == "complete" else None,
            change_tracking=change_tracking,
            commit_user=commit_user,
            commit_identifier=batch_id,
            compaction=False,
        )

    return commit_batch
