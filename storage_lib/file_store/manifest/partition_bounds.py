"""Bounds of the partitions in one manifest, so that a reader can skip the manifest."""

from __future__ import annotations

from collections.abc import Sequence

from storage_lib.file_store.data_file.comparable_key import comparable_value
from storage_lib.file_store.data_file.data_file_meta import SimpleStats
from storage_lib.schema.encoding.binary_row import decode_row, encode_row
from storage_lib.schema.types.data_types import DataType


class PartitionBounds:
    """Computes ``_PARTITION_STATS``: minimum, maximum and null count of each partition column separately.

    Values are never truncated: partition pruning relies on exact bounds.
    """

    def __init__(self, partition_types: Sequence[DataType]) -> None:
        self._types = tuple(partition_types)
        self._decoded: dict[bytes, tuple[object, ...]] = {}

    def of(self, partitions: Sequence[bytes]) -> SimpleStats:
        """Return the bounds of the serialized ``partitions``, one per manifest entry; equal ones count each time."""
        distinct = set(partitions)
        if len(distinct) == 1:
            (only,) = distinct
            all_or_none = tuple(len(partitions) if value is None else 0 for value in self._values(only))
            return SimpleStats(min_values=only, max_values=only, null_counts=all_or_none)
        rows = [self._values(partition) for partition in partitions]
        lows: list[object] = []
        highs: list[object] = []
        nulls: list[int] = []
        for index, data_type in enumerate(self._types):
            present = sorted(
                {row[index] for row in rows if row[index] is not None},
                key=lambda value, data_type=data_type: comparable_value(value, data_type),  # type: ignore[misc]
            )
            lows.append(present[0] if present else None)
            highs.append(present[-1] if present else None)
            nulls.append(sum(row[index] is None for row in rows))
        return SimpleStats(
            min_values=encode_row(lows, self._types),
            max_values=encode_row(highs, self._types),
            null_counts=tuple(nulls),
        )

    def comparable(self, partition: bytes) -> tuple[object, ...]:
        """Return a tuple that compares in partition order, column by column, null first."""
        values = zip(self._values(partition), self._types, strict=True)
        return tuple(
            (value is not None, None if value is None else comparable_value(value, of)) for value, of in values
        )

    def _values(self, partition: bytes) -> tuple[object, ...]:
        values = self._decoded.get(partition)
        if values is None:
            values = self._decoded[partition] = decode_row(partition, self._types)
        return values
