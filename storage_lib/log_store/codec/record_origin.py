"""Where records were in their topic, which a copy of them elsewhere does not tell by their places there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from storage_lib.schema.encoding.varint_columns import Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOrigin:
    """Kafka's partition and offset of each record."""

    partitions: Int64s
    offsets: Int64s

    @classmethod
    def in_partition(cls, partition: int, offsets: Int64s) -> RecordOrigin:
        """Return the origin of records that all are in one partition."""
        return cls(partitions=np.full(len(offsets), partition, np.int64), offsets=offsets)

    def at(self, places: Int64s | slice) -> RecordOrigin:
        """Return the origin of some records."""
        return RecordOrigin(partitions=self.partitions[places], offsets=self.offsets[places])
