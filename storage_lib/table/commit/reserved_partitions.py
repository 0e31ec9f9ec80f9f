"""Which partitions a commit needs to itself, besides what the lease ensures."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from storage_lib.schema.table_schema import TableSchema


class ReservedPartitions(Enum):
    """Where a commit needs to be the only one that changes rows since its base, besides what the lease ensures."""

    NONE = auto()
    WRITTEN = auto()
    """In the partitions that it has rows for: hash indexes are a partition's."""
    ALL = auto()
    """Everywhere: a key may be in any partition."""

    @classmethod
    def of(cls, schema: TableSchema) -> Self:
        """The reservations that a table of this schema needs."""
        if not schema.has_dynamic_buckets:
            return cls.NONE
        return cls.ALL if schema.crosses_partitions else cls.WRITTEN
