"""A place in the log: for every bucket the offset of the next record to read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LogOffsets:
    """Next offset per bucket; a bucket that is missing starts at 0."""

    next_offsets: Mapping[int, int] = field(default_factory=dict)

    def of(self, bucket: int) -> int:
        """The next offset to read from ``bucket``."""
        return self.next_offsets.get(bucket, 0)

    def advanced_to(self, later: Mapping[int, int]) -> LogOffsets:
        """These offsets with those of ``later`` in their place; no bucket ever goes back."""
        merged = dict(self.next_offsets)
        for bucket, offset in later.items():
            merged[bucket] = max(offset, merged.get(bucket, 0))
        return LogOffsets(merged)

    def to_json(self) -> str:
        """The spelling in snapshots and stream positions: ``{"0": 17, "1": 4}``."""
        return json.dumps({str(bucket): offset for bucket, offset in sorted(self.next_offsets.items())})

    @classmethod
    def from_json(cls, text: str) -> LogOffsets:
        """Read what ``to_json`` wrote."""
        return cls({int(bucket): int(offset) for bucket, offset in json.loads(text).items()})
