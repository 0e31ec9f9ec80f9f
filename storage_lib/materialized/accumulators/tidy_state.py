"""Upkeep of the state of accumulators after a refresh: it stays small, and keeps the snapshot that its table names."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from storage_lib.errors import StorageError
from storage_lib.materialized.sources.kept_snapshots import keep_snapshots

if TYPE_CHECKING:
    from storage_lib.materialized.accumulators.accumulated_state import NamedState
    from storage_lib.table.dynamic_table import DynamicTable

_LOGGER = logging.getLogger(__name__)
_SNAPSHOTS_KEPT = 20
_SNAPSHOTS_MOST = 40


def tidy_state(table: DynamicTable, state: NamedState) -> None:
    """Keep the named snapshot from expiring, compact the state, and remove what it no longer needs."""
    if state.snapshot_id == 0:
        return
    try:
        _tidied(table, state)
    except StorageError as error:
        # The refresh is committed; the next one tries again.
        _LOGGER.warning("table %s: its accumulators could not be compacted: %s", table.name, error)


def _tidied(table: DynamicTable, state: NamedState) -> None:
    keep_snapshots(table, {state.table.name: state.table}, {state.table.name: state.snapshot_id})
    earliest = state.table.inspect.earliest_snapshot_id() or state.snapshot_id
    state.table.compact(full=False)
    if state.snapshot_id - earliest > _SNAPSHOTS_MOST:
        state.table.maintenance.expire_snapshots(retain_last=_SNAPSHOTS_KEPT)
        state.table.maintenance.remove_orphan_files()
