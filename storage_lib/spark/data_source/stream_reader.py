"""Stream read: Spark's offsets are stream positions in JSON, and its input partitions are stream splits.

    {"start": "log.scan"} ─▶ the initial position ─▶ … ─▶ the log's offsets ─▶ …

The first batch is empty and only fixes where the stream starts: Spark logs the end of a batch but not its start, so
a query that crashed in its first batch would otherwise start at a different position after the restart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.spark.data_source.offset_stops import steps_of, without_stops
from storage_lib.spark.types.spark_schema import ROW_POSITION, arrow_schema_of, conform
from storage_lib.spark.versions.stream_api import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from storage_lib.table.protocol.stream_position import StreamPosition
from storage_lib.table.protocol.stream_split import AddedSplit, DifferenceSplit, LogSplit, StreamSplit

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from storage_lib.catalog.table_cache import TableKey
    from storage_lib.table.stream.hybrid_source import HybridSource

START = {"start": "log.scan"}
ROWS_UNLIMITED = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamScan:
    """Settings of a stream read: where it starts, how many rows a micro-batch has, and how changes are read.

    None: the table's option applies; for ``rows_per_trigger_max``: no limit.
    """

    startup: str | None = None
    timestamp_millis: int | None = None
    rows_per_trigger_max: int | None = None
    normalize: str | None = None
    on_untracked: str | None = None
    state_directory: str | None = None
    whole_commits: bool = False


_POSITION_BITS = 36
"""Low bits of a row position, which count the rows of one split (up to 68 billion); the high bits number the split."""


@dataclass
class StreamPartition(InputPartition):
    """Splits of one task in order, each with its number within the micro-batch."""

    value: tuple[tuple[int, StreamSplit], ...]


class TableStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Stream reader for the columns of ``struct``, which include the row kind. It has no state that a restart loses."""

    def __init__(self, key: TableKey, struct: StructType, scan: StreamScan) -> None:
        self._key = key
        self._arrow_schema = arrow_schema_of(struct)
        self._scan = scan
        self._target: StreamPosition | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        """Return a constant: the first batch determines the actual start."""
        return START

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  Spark's name
        """Limit the number of rows in one micro-batch."""
        return ReadMaxRows(self._scan.rows_per_trigger_max or ROWS_UNLIMITED)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802  Spark's name
        """Return the end of the next micro-batch; ``start`` itself without new rows."""
        self._key.refuse_if_dropped()
        source = self._source()
        if start == START:
            return self._offset(source.initial_position())
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) and limit.max_rows < ROWS_UNLIMITED else None
        begin = self._position(start)
        until = None if self._target is None else self._target.offsets
        end = source.latest_position(begin, max_rows=rows_max, until=until)
        reached = end if self._target is None else not_beyond(end, begin, self._target)
        return start if reached == begin else self._offset(reached)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        """Fix the end of this run: the next run reads later commits."""
        table = self._key.table()
        offsets = None if table.log is None else table.log.latest_offsets()
        self._target = StreamPosition(snapshot_id=table.inspect.latest_snapshot_id() or 0, offsets=offsets)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Plan the rows between two offsets, with one Spark partition per split.

        Changes of one bucket in several snapshots share a partition: Spark keeps the order of rows only within one.
        So do all rows of a bucket, if the micro-batch has several steps.
        """
        steps = [step for step in steps_of(start, end) if step[0] not in (START, step[1])]
        if not steps:
            return []
        source = self._source()
        splits = [split for one, two in steps for split in source.plan(self._position(one), self._position(two))]
        adds_only = self._key.table().schema.is_append_only
        together: dict[object, list[tuple[int, StreamSplit]]] = {}
        for number, split in enumerate(splits):
            place: object = number
            if len(steps) > 1 and not adds_only:
                place = _bucket_of(split)
            elif isinstance(split, AddedSplit | DifferenceSplit) and not adds_only:
                place = split.split.partition, split.split.bucket
            together.setdefault(place, []).append((number, split))
        return [StreamPartition(tuple(each)) for each in together.values()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of one partition with their kinds and optional positions, in order within each bucket."""
        source = self._source()
        for number, split in partition.value:
            position = number << _POSITION_BITS
            for batch in source.read(split):
                if batch.num_rows:
                    yield conform(self._with_positions(batch, position), self._arrow_schema, self._key.name)
                    position += batch.num_rows

    def _with_positions(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        if ROW_POSITION not in self._arrow_schema.names or ROW_POSITION in batch.schema.names:
            return batch
        return batch.append_column(ROW_POSITION, pa.array(np.arange(first, first + batch.num_rows, dtype=np.int64)))

    def _source(self) -> HybridSource:
        scan = self._scan
        return (
            self._key.table()
            .new_read()
            .stream(
                startup=scan.startup,
                timestamp=scan.timestamp_millis,
                normalize=scan.normalize,
                on_untracked=scan.on_untracked,
                state_directory=scan.state_directory,
                whole_commits=scan.whole_commits,
            )
        )

    @staticmethod
    def _offset(position: StreamPosition) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(position.to_json())
        return value

    @staticmethod
    def _position(offset: Mapping[str, Any]) -> StreamPosition:
        return StreamPosition.from_json(json.dumps(without_stops(offset)))


def _bucket_of(split: StreamSplit) -> int:
    return split.bucket if isinstance(split, LogSplit) else split.split.bucket


def not_beyond(end: StreamPosition, start: StreamPosition, target: StreamPosition) -> StreamPosition:
    """Return ``end``, limited to at most ``target`` and at least ``start``."""
    if end.offsets is None or target.offsets is None:
        if end.offsets is None and end.split_index is None and start.split_index is None:
            return replace(end, snapshot_id=max(start.snapshot_id, min(end.snapshot_id, target.snapshot_id)))
        return end
    if start.offsets is None:
        return end
    first = start.offsets
    capped: Mapping[int, int] = {
        bucket: max(first.of(bucket), min(offset, target.offsets.of(bucket)))
        for bucket, offset in end.offsets.next_offsets.items()
    }
    if any(first.of(bucket) != offset for bucket, offset in capped.items()):
        return replace(end, offsets=LogOffsets(capped, end.offsets.log_id))
    if end.watched_snapshot_id is None:
        return start
    # No rows to read, but record which snapshots were checked, so that a warning about one is not repeated.
    watched = max(start.watched_snapshot_id or 0, min(end.watched_snapshot_id, target.snapshot_id))
    return replace(start, watched_snapshot_id=watched)
