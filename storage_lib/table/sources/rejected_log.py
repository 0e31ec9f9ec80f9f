"""Rejected records as a log: what reads a topic can read them again. Their offsets are their places in the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from storage_lib.log_store.codec.log_columns import LogColumns
from storage_lib.log_store.codec.record_log import BucketRecords
from storage_lib.log_store.codec.record_origin import RecordOrigin
from storage_lib.log_store.log_offsets import LogOffsets

if TYPE_CHECKING:
    from collections.abc import Iterator

BUCKET = 0


class RejectedLog:
    """Records of one topic (``REJECTED_SCHEMA``), in order, with ``values`` in the place of theirs; one bucket."""

    def __init__(self, records: pa.Table, values: pa.Array) -> None:
        self._columns = LogColumns(
            keys=records["key"].combine_chunks(),
            values=values,
            offsets=np.arange(records.num_rows),
            timestamps=records["timestamp_millis"].combine_chunks().fill_null(0).to_numpy(),
            repairs=pa.nulls(records.num_rows, pa.int64()),
            origin=RecordOrigin(
                partitions=records["partition"].combine_chunks().cast(pa.int64()).to_numpy(),
                offsets=records["offset"].combine_chunks().to_numpy(),
            ),
        )

    def log_id(self) -> str | None:
        """See ``RecordLog.log_id``: records of a table have none."""
        return None

    def earliest_offsets(self) -> LogOffsets:
        """See ``RecordLog.earliest_offsets``."""
        return LogOffsets({BUCKET: 0})

    def latest_offsets(self) -> LogOffsets:
        """See ``RecordLog.latest_offsets``."""
        return LogOffsets({BUCKET: len(self._columns)})

    def offsets_at(self, timestamp_millis: int) -> LogOffsets:
        """See ``RecordLog.offsets_at``."""
        later = np.flatnonzero(self._columns.timestamps >= timestamp_millis)
        return LogOffsets({BUCKET: int(later[0]) if len(later) else len(self._columns)})

    def is_compacted(self) -> bool:
        """See ``RecordLog.is_compacted``: the records that were accepted meanwhile are in the table."""
        return False

    def records(
        self, start: LogOffsets, end: LogOffsets | None = None, *, buckets: tuple[int, ...] | None = None
    ) -> Iterator[BucketRecords]:
        """See ``RecordLog.records``."""
        if buckets is not None and BUCKET not in buckets:
            return
        stop = (end or self.latest_offsets()).of(BUCKET)
        yield BucketRecords(bucket=BUCKET, columns=self._columns.between(start.of(BUCKET), stop), next_offset=stop)
