"""Shares of one table's compaction, for parallel tasks. A share is a list of buckets, an operator's argument.

    [{"partition": {"day": "2024-05-14"}, "buckets": [0, 3]}, ...]

Buckets are independent of each other, so the commits of two shares do not conflict.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dynamic_table.arguments.partition_argument import partition_label, partition_text

if TYPE_CHECKING:
    from storage_lib import DynamicTable
    from storage_lib.file_store.compact import CompactionTask

__all__ = ["Share", "checked_share", "share_label", "shares_of", "size_of"]

Share = list[dict[str, Any]]
LABELLED_MAX = 3


def shares_of(table: DynamicTable, tasks: Sequence[CompactionTask], bytes_per_share: float) -> list[tuple[int, Share]]:
    """Divide compactions into shares of about ``bytes_per_share``; return each with its size in bytes."""
    sizes: dict[tuple[bytes, int], int] = defaultdict(int)
    for task in tasks:
        sizes[task.partition, task.bucket] += size_of(task)
    largest_first = sorted(sizes, key=lambda place: (-sizes[place], place))
    count = min(len(largest_first), max(1, math.ceil(sum(sizes.values()) / bytes_per_share)))
    dealt = [largest_first[first::count] for first in range(count)]
    return [(sum(sizes[place] for place in places), _share(table, places)) for places in dealt]


def size_of(task: CompactionTask) -> int:
    """Return the size in bytes of the files that the compaction reads."""
    return sum(file.file_size for file in task.unit.files)


def checked_share(share: object) -> list[tuple[Mapping[str, Any], int]]:
    """Return each bucket by its partition and number; raises InvalidInputError for an invalid share."""
    from storage_lib.errors import InvalidInputError

    if isinstance(share, list | tuple) and share and all(map(_is_place, share)):
        return [(each["partition"], number) for each in share for number in each["buckets"]]
    message = f"buckets are a list like [{{'partition': {{'dt': '2024-05-14'}}, 'buckets': [0, 3]}}], not {share!r}."
    raise InvalidInputError(message)


def share_label(share: Share) -> str:
    """Return ``dt=2024-05-14: 0, 3; ...``, for display."""
    parts = [f"{partition_label([each['partition']])}: {', '.join(map(str, each['buckets']))}" for each in share]
    more = f"; and {len(parts) - LABELLED_MAX} more partitions" if len(parts) > LABELLED_MAX else ""
    return "; ".join(part.removeprefix(": ") for part in parts[:LABELLED_MAX]) + more


def _share(table: DynamicTable, places: Sequence[tuple[bytes, int]]) -> Share:
    from storage_lib.schema.placing.partition import PartitionCodec

    codec = PartitionCodec(table.schema)
    numbers: dict[bytes, list[int]] = defaultdict(list)
    for partition, bucket in sorted(places):
        numbers[partition].append(bucket)
    return [{"partition": _spelled(codec.decode(each)), "buckets": buckets} for each, buckets in numbers.items()]


def _spelled(partition: Mapping[str, Any]) -> dict[str, str | None]:
    return {column: None if value is None else partition_text(value) for column, value in partition.items()}


def _is_place(place: object) -> bool:
    return (
        isinstance(place, Mapping)
        and isinstance(place.get("partition"), Mapping)
        and isinstance(place.get("buckets"), list | tuple)
        and all(isinstance(number, int) for number in place["buckets"])
    )
