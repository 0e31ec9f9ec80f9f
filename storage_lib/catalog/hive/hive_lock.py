"""Catalog lock in a Hive metastore: an exclusive lock on a table's name, as Paimon's Hive catalog takes it.

The metastore records heartbeats, which show a waiter whether the holder is alive. Other programs may send none; their
time-out is the metastore's default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pymetastore.hive_metastore.ttypes import LockState

from storage_lib.catalog.locks.catalog_lock import CatalogLock, LockSettings
from storage_lib.hive.hive_metastore import HiveMetastore
from storage_lib.hive.table_lock import USER, beat, give_back, locks_of, request_lock
from storage_lib.io.environment import Clock, SystemClock
from storage_lib.schema.options.catalog_options import URI

_TIMEOUT_OF_OTHERS = 300.0


class HiveLock(CatalogLock):
    """``CatalogLock`` of one metastore. A ticket is the lock's id."""

    def __init__(self, metastore: HiveMetastore, settings: LockSettings, clock: Clock) -> None:
        super().__init__(settings, clock)
        self._metastore = metastore

    def ask(self, database: str, table: str) -> str | None:
        """Request the lock; withdraw the request if it is not granted at once."""
        lock_id = request_lock(self._metastore, database, table)
        return None if lock_id is None else str(lock_id)

    def is_beaten(self, ticket: str) -> str | None:
        """Send a heartbeat."""
        return ticket if beat(self._metastore, int(ticket)) else None

    def give_back(self, ticket: str) -> None:
        """Unlock."""
        give_back(self._metastore, int(ticket))

    def take_over(self, database: str, table: str, seen: str) -> str | None:
        """Unlock the holder if its id and last heartbeat are still ``seen``, then request the lock."""
        holder = self._holder(database, table)
        if holder is not None and _sign(holder) == seen:
            self.give_back(str(holder.lockid))
        return self.ask(database, table)

    def sign_of_life(self, database: str, table: str) -> tuple[str, float] | None:
        """Return the holder's id and last heartbeat as text, and its time-out."""
        holder = self._holder(database, table)
        if holder is None:
            return None
        return _sign(holder), self.settings.timeout if holder.user == USER else _TIMEOUT_OF_OTHERS

    def close(self) -> None:
        """Do nothing: each call closes its connection."""

    def _holder(self, database: str, table: str) -> Any:
        locks = locks_of(self._metastore, database, table)
        return next((each for each in locks if each.state == LockState.ACQUIRED), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class HiveLockFactory:
    """``LockFactory`` of the metastore that ``options`` name."""

    options: Mapping[str, str] = field(repr=False)
    settings: LockSettings

    def create(self) -> HiveLock:
        """Create the lock in any process."""
        return HiveLock(HiveMetastore(self.options.get(URI, ""), option=URI), self.settings, SystemClock())


def _sign(holder: Any) -> str:
    return f"lock {holder.lockid} of {holder.user}@{holder.hostname}, heartbeat {holder.lastheartbeat}"
