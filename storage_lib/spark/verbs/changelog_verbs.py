"""``read_changelog``: read an external CDC topic as a streaming data frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from pyspark.sql.types import StringType, StructField, StructType

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.external.external_topic import APPLIED_TO, START, START_ID
from storage_lib.schema.types.row_kind import ROW_KIND_COLUMN
from storage_lib.spark.data_source.changelog_source import SOURCE_NAME
from storage_lib.spark.data_source.row_limit import refuse_limit
from storage_lib.spark.data_source.table_source import register
from storage_lib.spark.tasks.active_session import active_session
from storage_lib.spark.types.spark_schema import struct_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.log_store.log_offsets import LogOffsets
    from storage_lib.table.dynamic_table import DynamicTable


def read_changelog(
    spark: SparkSession,
    *,
    topic: str,
    schema: str | StructType | None = None,
    table: DynamicTable | None = None,
    options: Mapping[str, str],
    rows_per_trigger_max: int | None = None,
    start: LogOffsets | None = None,
) -> DataFrame:
    """Read an external topic of changes as a streaming data frame: for one table, or as rows for a query.

    With ``table``, ``write_stream(df, table)`` applies the records to the table as ``ingest`` does, with all options
    of a source (docs/cdc.md): it completes rows from stored ones, keeps rejected records, follows the source's columns
    and TRUNCATEs. The data frame can't be used otherwise. A new checkpoint continues where the table ends.

    With ``schema``, a Spark struct or DDL (``id BIGINT, ...``), the data frame has these columns and ``_row_kind``, for
    any query. Records of which only a reader that knows the table could make rows end the stream with an error.

    ``options`` are
    ``log.kafka.bootstrap.servers`` and other settings of the Kafka client, and the start (``log.scan``: ``full``,
    ``latest``, or ``from-timestamp`` with ``log.scan.timestamp-millis``). ``start`` overrides it, for example with
    ``table.inspect.source_offsets(topic)``. ``log.format`` is ``debezium-json``, ``debezium-json-schema``,
    ``debezium-avro``, ``upsert-kafka`` or ``upsert-kafka-avro``; the last two need the columns of the keys in
    ``primary-key``, and their deletions have no other columns. ``source`` is the name under which a table stores the
    topic's offsets; default: the topic.

    Raises ``InvalidInputError`` for ``rows_per_trigger_max`` before Spark 4.2.
    """
    refuse_limit(f"topic {topic}", "rows_per_trigger_max", rows_per_trigger_max)
    register(spark)
    if (schema is None) == (table is None):
        message = (
            f"topic {topic}: read_changelog() needs either table=, to apply the records to it, or schema=, to have "
            "them as rows"
        )
        raise InvalidInputError(message)
    given = {**options, "topic": topic}
    if table is not None:
        schema = struct_of(table.schema)
        given[APPLIED_TO] = table.uuid
        start = table.inspect.source_offsets(given.get("source", topic)) if start is None else start
    columns = cast("StructType", StructType.fromDDL(schema) if isinstance(schema, str) else schema)
    wanted = StructType([*columns.fields, StructField(ROW_KIND_COLUMN, StringType(), nullable=False)])
    if start is not None:
        given[START] = start.to_json()
        if start.log_id is not None:
            given[START_ID] = start.log_id
    if rows_per_trigger_max is not None:
        given["maxRowsPerTrigger"] = str(rows_per_trigger_max)
    with active_session(spark):
        return spark.readStream.format(SOURCE_NAME).schema(wanted).options(**given).load()
