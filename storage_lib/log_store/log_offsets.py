"""Position in a log: the offset of the next record to read, per bucket.

Offsets are meaningless in another log, even one of the same name: a topic that is deleted and recreated starts at 0
again. They therefore carry the id of their log where it is known.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from storage_lib.errors import LogOffsetsExpiredError


@dataclass(frozen=True, slots=True)
class LogOffsets:
    """Next offset per bucket; missing buckets start at 0. Equality compares the offsets, not the log ids."""

    next_offsets: Mapping[int, int] = field(default_factory=dict)
    log_id: str | None = field(default=None, compare=False)

    def of(self, bucket: int) -> int:
        """The next offset to read from ``bucket``."""
        return self.next_offsets.get(bucket, 0)

    def advanced_to(self, later: Mapping[int, int]) -> LogOffsets:
        """Return the greater of both offsets for each bucket."""
        merged = dict(self.next_offsets)
        for bucket, offset in later.items():
            merged[bucket] = max(offset, merged.get(bucket, 0))
        return LogOffsets(merged, self.log_id)

    def distance_to(self, end: LogOffsets) -> int:
        """Return the number of offsets from here to ``end``, in all its buckets; those beyond it do not count."""
        return sum(max(0, offset - self.of(bucket)) for bucket, offset in end.next_offsets.items())

    def is_of(self, log_id: str | None) -> bool:
        """Whether these offsets may belong to that log: False only if both ids are known and differ."""
        return self.log_id is None or log_id is None or self.log_id == log_id

    def is_same_place(self, other: LogOffsets | None) -> bool:
        """Whether ``other`` has the same offsets in the same log."""
        return self == other and self.is_of(other.log_id)

    def in_log(self, log_id: str | None) -> LogOffsets:
        """Return these offsets for that log, or its beginning if they belong to an earlier log of the same name."""
        return LogOffsets(self.next_offsets if self.is_of(log_id) else {}, log_id or self.log_id)

    def to_json(self) -> str:
        """Format for snapshots and stream positions: ``{"0": 17, "1": 4}``."""
        return json.dumps({str(bucket): offset for bucket, offset in sorted(self.next_offsets.items())})

    def __str__(self) -> str:
        """Format for messages; includes the log's id because the same offsets may exist in another log."""
        return f"offsets {self.to_json()}{'' if self.log_id is None else f' of topic {self.log_id}'}"

    @classmethod
    def from_json(cls, text: str, log_id: str | None = None) -> LogOffsets:
        """Parse the output of ``to_json``, which does not include ``log_id``."""
        return cls({int(bucket): int(offset) for bucket, offset in json.loads(text).items()}, log_id)


def recreated_error(log: str) -> LogOffsetsExpiredError:
    """Return the error for offsets in a log that was deleted and recreated under the same name."""
    return LogOffsetsExpiredError(
        f"log {log!r} was recreated: the offsets belong to the log before it. Read the files from a snapshot again "
        "(log.scan=full)"
    )
