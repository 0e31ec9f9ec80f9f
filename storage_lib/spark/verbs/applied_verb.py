"""``write_stream`` of a topic that is applied to a table: the driver commits what ``ingest`` would, micro-batch by
micro-batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.external.external_topic import ExternalTopic
from storage_lib.spark.data_source.batch_sources import CheckpointSources
from storage_lib.spark.data_source.checkpoint_identity import settled_query_id
from storage_lib.spark.stream.applied_topic import AppliedTopic
from storage_lib.spark.stream.plan.applied_source import is_unchanged
from storage_lib.spark.verbs.stream_settings import stream_start, triggered
from storage_lib.spark.verbs.table_stream import TableStream

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.sources.row_check import RowCheck


def start_applied(
    df: DataFrame,
    table: DynamicTable,
    options: Mapping[str, str],
    *,
    checkpoint_location: str,
    output_mode: str,
    trigger_seconds: float,
    available_now: bool,
    change_tracking: bool | None,
    query_name: str | None,
    compaction: bool | None,
    position_column: str | None,
    real_time: bool,
    expect: RowCheck | None,
) -> TableStream:
    """Start the stream. ``options`` are those of the topic; other arguments and errors as for ``write_stream``."""
    topic = ExternalTopic.parse(options, table.arrow_schema)
    _refuse_another_use(df, table, topic)
    _refuse_arguments(
        table,
        output_mode=output_mode,
        compaction=compaction,
        position_column=position_column,
        real_time=real_time,
    )
    past = CheckpointSources.of(checkpoint_location, table.address.options)
    if past is None:
        message = (
            f"table {table.name}: checkpoint {checkpoint_location} can't be read with the table's options, but it says "
            "which records are in a micro-batch. Use a directory that they reach, such as one next to the table"
        )
        raise InvalidInputError(message)
    user = settled_query_id(df.sparkSession, checkpoint_location, table)
    past.refuse_another_past(table, by_parts=True)
    applied = AppliedTopic(table, topic, past, topic.log, change_tracking=change_tracking, expect=expect)

    def apply(_: DataFrame, batch_id: int) -> None:
        applied.apply(batch_id)

    writer = df.writeStream.foreachBatch(apply)
    if query_name is not None:
        writer = writer.queryName(query_name)
    writer = triggered(writer, trigger_seconds, available_now=available_now)
    return TableStream(
        stream_start(writer, df, checkpoint_location, available_now=available_now), table, user, None, applied=applied
    )


def _refuse_another_use(df: DataFrame, table: DynamicTable, topic: ExternalTopic) -> None:
    if topic.applied_to != table.uuid:
        message = (
            f"table {table.name}: the stream of topic {topic.name!r} was made for another table, or for one of this "
            "name that was dropped since: read_changelog(table=...) has to name the table of write_stream()"
        )
        raise InvalidInputError(message)
    if not is_unchanged(df):
        message = (
            f"table {table.name}: the records of topic {topic.name!r} are applied as they are, so a query can't change "
            "them. Leave the query out; or use read_changelog(schema=...), which has them as rows, but refuses "
            "records of which only a reader that knows the table can make rows"
        )
        raise InvalidInputError(message)


def _refuse_arguments(
    table: DynamicTable, *, output_mode: str, compaction: bool | None, position_column: str | None, real_time: bool
) -> None:
    found = (
        (f"output_mode={output_mode!r}" if output_mode != "append" else "", "records are applied by their kinds"),
        ("real_time=True" if real_time else "", "a micro-batch reads records where it commits them"),
        ("position_column" if position_column is not None else "", "records are applied in their order"),
        (
            "compaction=False" if compaction is False and not table.options.write_only else "",
            "each commit runs the compactions that are due, unless the table has write-only=true",
        ),
    )
    for argument, why in found:
        if argument:
            message = f"table {table.name}: read_changelog(table=...) doesn't go with {argument}: {why}"
            raise InvalidInputError(message)
