"""``format("debezium_json")``: an external CDC topic as a stream of rows with their kinds.

The reader supplies the schema: the columns to read, followed by ``_row_kind STRING``. Offsets are the topic's, one per
Kafka partition; the first batch is empty and fixes where the stream starts, as in ``stream_reader``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.external.captured_topic import CapturedBatch
from storage_lib.log_store.external.external_topic import ExternalTopic
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.schema.options.source_options import (
    METADATA,
    ON_REJECT,
    ON_TRUNCATE,
    REJECT_MAX,
    SCHEMA_CHANGE,
    OnReject,
    SchemaChangeOfSource,
)
from storage_lib.schema.types.row_kind import RETRACT_BIT, ROW_KIND_COLUMN, ROW_KIND_SYMBOLS
from storage_lib.spark.data_source.batch_sources import offset_of, offsets_in
from storage_lib.spark.data_source.offset_stops import steps_of
from storage_lib.spark.data_source.remembering_reader import reader_for_spark
from storage_lib.spark.data_source.row_limit import refuse_limit_of_source
from storage_lib.spark.data_source.stream_reader import ROWS_UNLIMITED, START
from storage_lib.spark.types.spark_schema import arrow_schema_of, conform
from storage_lib.spark.versions.stream_api import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from storage_lib.table.sources.grown_topic import has_grown

SOURCE_NAME = "debezium_json"
_OF_TABLE = "read_changelog(table=...), which write_stream() applies to the table as it is,"
_NOT_COMMITTED = "Its micro-batch was not committed"


@dataclass
class TopicPartition(InputPartition):
    """Records of one Kafka partition from ``start`` up to, not including, ``end``."""

    value: int
    start: int
    end: int


class ChangelogSource(DataSource):
    """Data source for one read of one topic."""

    def __init__(self, options: dict[str, str]) -> None:
        """Refuse what the installed Spark lacks."""
        refuse_limit_of_source(SOURCE_NAME, options)
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        """Name of the source in ``format(...)``."""
        return SOURCE_NAME

    def schema(self) -> StructType:
        """Raise ``InvalidInputError``: a topic has no schema of its own, so the reader has to supply one."""
        message = (
            f'format("{SOURCE_NAME}") needs the columns: .schema("id BIGINT, ..., {ROW_KIND_COLUMN} STRING"), '
            "or storage_lib.spark.read_changelog(spark, topic=..., schema=...)"
        )
        raise InvalidInputError(message)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        """Return a stream reader for the columns in ``schema``, which has to end with the row kind."""
        if schema.fieldNames()[-1:] != [ROW_KIND_COLUMN]:
            message = (
                f"a changelog read has to end with {ROW_KIND_COLUMN} STRING, or deletions would look like rows; "
                f"the schema is ({', '.join(schema.fieldNames())})"
            )
            raise InvalidInputError(message)
        arrow_schema = arrow_schema_of(schema)
        columns = pa.schema(list(arrow_schema)[:-1])
        topic = ExternalTopic.parse(self.options, columns)
        if topic.applied_to is None:
            _refuse_options_of_tables(topic)
        return reader_for_spark(ChangelogReader(topic, arrow_schema))


def _refuse_options_of_tables(topic: ExternalTopic) -> None:
    """Refuse options that only a reader which knows the table can follow."""
    settings = topic.settings
    if settings.on_reject is OnReject.QUARANTINE:
        message = (
            f"topic {topic.name}: a stream of rows can't keep rejected records, which belong to the commit of a "
            f"table; use {_OF_TABLE} ingest(), or {ON_REJECT}=fail or skip"
        )
        raise InvalidInputError(message)
    if settings.reject_limit.is_set:
        message = (
            f"topic {topic.name}: a stream of rows does not count the records that its tasks skip, so it can't limit "
            f"them ({REJECT_MAX}); use {_OF_TABLE} or ingest()"
        )
        raise InvalidInputError(message)
    if settings.schema_change is SchemaChangeOfSource.EVOLVE:
        message = (
            f"topic {topic.name}: a stream of rows can't change its columns while it runs; use {_OF_TABLE} ingest(), "
            f"or {SCHEMA_CHANGE}=fail or ignore"
        )
        raise InvalidInputError(message)
    if settings.metadata and not topic.primary_keys:
        message = (
            f"topic {topic.name}: {METADATA} needs the key of the rows, option primary-key: a deletion has the "
            f"metadata of its own record, so that only its key tells its row; or use {_OF_TABLE} or ingest()"
        )
        raise InvalidInputError(message)


class ChangelogReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Stream reader of one topic; it has no state that a restart would lose."""

    def __init__(self, topic: ExternalTopic, arrow_schema: pa.Schema) -> None:
        self._topic = topic
        self._arrow_schema = arrow_schema
        self._target: LogOffsets | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        """Return a constant: the first batch determines the actual start."""
        return START

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  Spark's name
        """Limit the number of rows in one micro-batch."""
        return ReadMaxRows(self._topic.rows_per_trigger_max or ROWS_UNLIMITED)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802  Spark's name
        """Return the end of the next micro-batch; ``start`` itself without new records."""
        log = self._topic.log()
        if start == START:
            return offset_of(self._topic.source, self._topic.first_offsets(log))
        begin = offsets_in(start)
        newest = log.latest_offsets() if self._target is None else self._target
        self._topic.refuse_recreated(begin, newest.log_id)
        behind = {partition: end for partition, end in newest.next_offsets.items() if end > begin.of(partition)}
        if not behind:
            return start
        # What added partitions have is read at once with all before it: see ``grown_topic``.
        is_whole = self._topic.applied_to is not None and has_grown(begin, newest)
        if isinstance(limit, ReadMaxRows) and limit.max_rows < ROWS_UNLIMITED and not is_whole:
            share = max(1, limit.max_rows // len(behind))
            behind = {partition: min(end, begin.of(partition) + share) for partition, end in behind.items()}
        return offset_of(self._topic.source, begin.in_log(newest.log_id).advanced_to(behind))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        """Fix the end of this run at the newest offsets."""
        self._target = self._topic.log().latest_offsets()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Plan the records between two offsets: one Spark partition per Kafka partition with new records."""
        begun = [step[0] for step in steps_of(start, end) if step[0] != START]
        if not begun:
            return []
        begin = offsets_in(begun[0])
        # After a restart, Spark reads a batch that was already planned without calling latestOffset, so check here too.
        self._topic.refuse_recreated(begin, self._topic.log().log_id())
        return [
            TopicPartition(partition, begin.of(partition), stop)
            for partition, stop in sorted(offsets_in(end).next_offsets.items())
            if stop > begin.of(partition)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the changes of one partition, in the topic's order."""
        if not isinstance(partition, TopicPartition):
            return
        if self._topic.applied_to is not None:
            message = (
                f"topic {self._topic.name!r}: read_changelog(table=...) gives no rows: write_stream(df, table) applies "
                "its records to that table as they are. Pass schema= in place of table= to query the rows, or to write "
                "them in another way"
            )
            raise InvalidInputError(message)
        begin, end = LogOffsets({partition.value: partition.start}), LogOffsets({partition.value: partition.end})
        captured = replace(self._topic.captured(self._topic.log()), outcome=_NOT_COMMITTED)
        for batch in captured.read(begin, end, buckets=(partition.value,)):
            self._refuse_incomplete(batch)
            changes = batch.changes
            if changes.rows.num_rows:
                kinds = pa.array(ROW_KIND_SYMBOLS).take(changes.kinds)
                names = [*changes.rows.schema.names, ROW_KIND_COLUMN]
                rows = pa.RecordBatch.from_arrays([*changes.rows.columns, kinds], names=names)
                yield conform(rows, self._arrow_schema, self._topic.name)

    def _refuse_incomplete(self, batch: CapturedBatch) -> None:
        """Refuse what only a reader that knows the table can apply: unchanged values that are left out, and TRUNCATE.

        Deletions of a key alone are passed on: what writes them completes them.
        """
        place = f"topic {self._topic.name!r}, partition {batch.bucket}"
        if batch.truncation_offset is not None:
            message = (
                f"{place}, offset {batch.truncation_offset}: the source was truncated, and a stream of rows can't "
                f"delete all rows of a table. {_NOT_COMMITTED}. Use {_OF_TABLE} or ingest(), with {ON_TRUNCATE}=apply, "
                f"or continue with {ON_TRUNCATE}=ignore"
            )
            raise InvalidInputError(message)
        is_added = pc.equal(pc.bit_wise_and(batch.changes.kinds, pa.scalar(RETRACT_BIT, pa.int8())), 0)
        for name, mask in batch.changes.unavailable.items():
            added = np.flatnonzero(mask & is_added.to_numpy(zero_copy_only=False))
            if len(added):
                message = (
                    f"{place}, offset {batch.offsets[added[0]]}: column {name!r} has not changed, and the record "
                    f"leaves out its value, which a stream of rows can't look up. {_NOT_COMMITTED}. Use {_OF_TABLE} or "
                    "ingest(), or let the database log whole rows (PostgreSQL: ALTER TABLE ... REPLICA IDENTITY FULL)"
                )
                raise InvalidInputError(message)
