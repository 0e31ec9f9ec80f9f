"""Partitions in which a commit must be the only one, in addition to what the lease ensures."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from storage_lib.schema.table_schema import TableSchema


class ReservedPartitions(Enum):
    """Partitions in which no other commit may have changed rows since a commit's base."""

    NONE = auto()
    WRITTEN = auto()
    """The partitions that the commit has rows for: hash indexes are stored per partition."""
    ALL = auto()
    """All partitions: a key may be in any of them."""

    @classmethod
    def of(cls, schema: TableSchema) -> Self:
        """Return the reservation that a table of this schema needs."""
        if not schema.has_dynamic_buckets:
            return cls.NONE
        return cls.ALL if schema.crosses_partitions else cls.WRITTEN
