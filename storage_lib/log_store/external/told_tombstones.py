"""Tombstones whose deletion ends what was read before, so that the decoder of a batch does not see both.

It matters only where a tombstone by itself is refused, because nobody can tell which rows are newer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from storage_lib.errors import LogOffsetsExpiredError
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.schema.types.row_kind import RowKind

if TYPE_CHECKING:
    from storage_lib.log_store.capture.capture_decoder import CaptureDecoder
    from storage_lib.log_store.codec.log_columns import LogColumns
    from storage_lib.log_store.codec.record_log import RecordLog


def without_told_tombstone(bucket: int, columns: LogColumns, decoder: CaptureDecoder, log: RecordLog) -> LogColumns:
    """Return the records without the first one if it is the tombstone of a deletion directly before it."""
    if not decoder.table.requires_metadata or decoder.table.ignores_tombstones or not len(columns):
        return columns
    offset = int(columns.offsets[0])
    # Stored records are not where they were in their topic.
    if columns.origin is not None or columns.values[0].is_valid or not offset:
        return columns
    start, end = LogOffsets({bucket: offset - 1}), LogOffsets({bucket: offset})
    try:
        before = [each.columns for each in log.records(start, end, buckets=(bucket,)) if len(each.columns)]
    except LogOffsetsExpiredError:
        return columns
    if not before or before[-1].keys[-1] != columns.keys[0]:
        return columns
    is_deletion = decoder.captured(before[-1]).kinds.to_pylist() == [RowKind.DELETE]
    return columns.without(np.zeros(1, np.int64)) if is_deletion else columns
