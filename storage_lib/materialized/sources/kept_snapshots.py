"""Keep the snapshots of sources from which a materialized table's next refresh applies changes.

The table is a consumer of each source, at its position. Without the snapshot the next refresh computes the whole query,
so a failure to register is only logged. A suspended table keeps no snapshots.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from storage_lib.errors import NotFoundError, StorageError

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable

_LOGGER = logging.getLogger(__name__)


def consumer_name(table: DynamicTable) -> str:
    """Return the name of the consumer that a materialized table has in its sources."""
    return f"materialized-table-{table.uuid}"


def keep_snapshots(table: DynamicTable, sources: Mapping[str, DynamicTable], positions: Mapping[str, int]) -> None:
    """Register ``table`` as a consumer of its sources at ``positions``, snapshot ids by ``database.table``."""
    for name, source in sources.items():
        try:
            source.consumers.create(consumer_name(table), max(1, positions[name]))
        except StorageError as error:
            _LOGGER.warning(
                "table %s: snapshot %s of its source %s can't be kept from expiring: %s. If it expires, the next "
                "refresh computes the whole query",
                table.name,
                positions[name],
                name,
                error,
            )


def release_snapshots(table: DynamicTable, sources: Mapping[str, DynamicTable]) -> None:
    """Let the snapshots expire that ``keep_snapshots`` keeps."""
    for source in sources.values():
        try:
            source.consumers.delete(consumer_name(table))
        except NotFoundError:
            continue
