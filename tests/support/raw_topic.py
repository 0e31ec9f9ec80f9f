"""A topic in memory that holds records as other programs write them, and its ingest into a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from storage_lib import DynamicTable, LogOffsetsExpiredError
from storage_lib.log_store.codec.log_columns import LogColumns, no_columns
from storage_lib.log_store.codec.record_log import BucketRecords
from storage_lib.log_store.external.external_topic import ExternalTopic
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.table.sources.ingest import IngestResult, SourceReader
from storage_lib.table.sources.row_check import RowCheck

NAME = "shop.public.orders"
_SERVERS = {"kafka.bootstrap.servers": "nowhere:9092"}
Record = tuple[int, bytes | None, bytes | None]


@dataclass
class RawTopic:
    """A ``RecordLog`` of one partition or more; a record is its offset, key and value."""

    partition_count: int = 1
    batch_size: int = 1000
    partitions: list[list[Record]] = field(default_factory=list)
    next_offsets: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    is_compacting: bool = False
    timestamps: dict[tuple[int, int], int] = field(default_factory=dict)
    """By partition and offset; 0 for other records."""

    def __post_init__(self) -> None:
        """Begin without records."""
        self.partitions = [[] for _ in range(self.partition_count)]
        self.next_offsets = [0] * self.partition_count
        self.starts = [0] * self.partition_count

    # Writing

    def grow(self, partition_count: int) -> None:
        """Add partitions up to a number of them."""
        for _ in range(self.partition_count, partition_count):
            self.partitions.append([])
            self.next_offsets.append(0)
            self.starts.append(0)
        self.partition_count = partition_count

    def tell(self, key: bytes | None, value: bytes | None, partition: int = 0, timestamp: int = 0) -> int:
        """Append a record; return its offset."""
        offset = self.next_offsets[partition]
        if timestamp:
            self.timestamps[partition, offset] = timestamp
        self.partitions[partition].append((offset, key, value))
        self.next_offsets[partition] += 1
        return offset

    def compact(self) -> None:
        """Keep only the newest record of each key, tombstones included, as a broker does sooner or later."""
        for number, records in enumerate(self.partitions):
            newest = {key: offset for offset, key, _ in records}
            self.partitions[number] = [each for each in records if each[1] is None or newest[each[1]] == each[0]]

    # RecordLog

    def log_id(self) -> str | None:
        """See ``LogStore.log_id``."""
        return "raw"

    def is_compacted(self) -> bool:
        """See ``RecordLog.is_compacted``."""
        return self.is_compacting

    def earliest_offsets(self) -> LogOffsets:
        """See ``LogStore.earliest_offsets``."""
        return LogOffsets(dict(enumerate(self.starts)), "raw")

    def latest_offsets(self) -> LogOffsets:
        """See ``LogStore.latest_offsets``."""
        return LogOffsets(dict(enumerate(self.next_offsets)), "raw")

    def offsets_at(self, timestamp_millis: int) -> LogOffsets:
        """See ``LogStore.offsets_at``."""
        return self.latest_offsets() if timestamp_millis else self.earliest_offsets()

    def records(
        self, start: LogOffsets, end: LogOffsets | None = None, *, buckets: tuple[int, ...] | None = None
    ) -> Iterator[BucketRecords]:
        """See ``RecordLog.records``."""
        stop = self.latest_offsets() if end is None else end
        for bucket in range(self.partition_count) if buckets is None else buckets:
            first, last = start.of(bucket), stop.of(bucket)
            if first < self.starts[bucket]:
                message = f"offset {first} is no longer held"
                raise LogOffsetsExpiredError(message)
            chosen = [each for each in self.partitions[bucket] if first <= each[0] < last]
            for begin in range(0, len(chosen), self.batch_size):
                some = chosen[begin : begin + self.batch_size]
                times = np.array([self.timestamps.get((bucket, offset), 0) for offset, _, _ in some], np.int64)
                columns = replace(columns_of(some), timestamps=times)
                yield BucketRecords(bucket=bucket, columns=columns, next_offset=some[-1][0] + 1)
            if not chosen or chosen[-1][0] + 1 < last:
                yield BucketRecords(bucket=bucket, columns=no_columns(), next_offset=max(first, last))

    # Reading into a table

    def ingest(
        self,
        table: DynamicTable,
        *,
        rows_per_commit: int = 1000,
        skip_expired: bool = False,
        options: Mapping[str, str] | None = None,
        expect: RowCheck | None = None,
        **more: str,
    ) -> IngestResult:
        """Ingest what is new; ``options`` and keyword arguments (``on_truncate="apply"``) are those of the source."""
        given = {f"source.{key.replace('_', '-')}": value for key, value in more.items() if key != "format"}
        if "format" in more:
            given["log.format"] = more["format"]
        spelled = {**_SERVERS, **given, **(options or {}), "topic": NAME}
        topic = ExternalTopic.parse(spelled, table.arrow_schema)
        reader = SourceReader(table, topic, self, NAME, rows_per_commit, skip_expired=skip_expired, expect=expect)
        return reader.read_up_to(self.latest_offsets(), change_tracking=None)


def columns_of(records: list[Record]) -> LogColumns:
    """Return records as columns."""
    return LogColumns(
        keys=pa.array([key for _, key, _ in records], pa.binary()),
        values=pa.array([value for _, _, value in records], pa.binary()),
        offsets=np.array([offset for offset, _, _ in records], np.int64),
        timestamps=np.zeros(len(records), np.int64),
        repairs=pa.nulls(len(records), pa.int64()),
    )
