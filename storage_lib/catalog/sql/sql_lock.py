"""Lock of a SQL catalog: a row of ``paimon_distributed_locks``, which Paimon's JDBC catalog respects as well.

The row's ``lock_owner`` ends with a number that grows with each heartbeat. Each update of the row is conditional on the
owner that was read before, so only one of two concurrent updates succeeds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, and_, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from storage_lib.catalog.locks.catalog_lock import CatalogLock, LockSettings
from storage_lib.catalog.sql.sql_database import LOCKS, SqlDatabase
from storage_lib.io.environment import Clock, SystemClock, new_uuid

_OWNER_LENGTH = 24
_SEPARATOR = "|"


class SqlLock(CatalogLock):
    """``CatalogLock`` in one database. A ticket is ``<lock id>|<owner>``."""

    def __init__(self, database: SqlDatabase, settings: LockSettings, clock: Clock) -> None:
        super().__init__(settings, clock)
        self._database = database

    def ask(self, database: str, table: str) -> str | None:
        """Insert the row."""
        lock_id, owner = self._id(database, table), _new_owner()
        try:
            with self._database.transaction("lock a table") as connection:
                connection.execute(insert(LOCKS).values(lock_id=lock_id, **self._row(owner)))
        except IntegrityError:
            return None
        return f"{lock_id}{_SEPARATOR}{owner}"

    def is_beaten(self, ticket: str) -> str | None:
        """Increment the number at the end of the owner."""
        lock_id, owner = ticket.split(_SEPARATOR)
        holder, beat = owner.rsplit("-", 1)
        return self._changed(lock_id, owner, f"{holder}-{int(beat) + 1}")

    def give_back(self, ticket: str) -> None:
        """Delete the row."""
        lock_id, owner = ticket.split(_SEPARATOR)
        with self._database.transaction("unlock a table") as connection:
            connection.execute(delete(LOCKS).where(LOCKS.c.lock_id == lock_id, LOCKS.c.lock_owner == owner))

    def take_over(self, database: str, table: str, seen: str) -> str | None:
        """Set the row's owner to a new one of ours."""
        return self._changed(self._id(database, table), seen, _new_owner())

    def sign_of_life(self, database: str, table: str) -> tuple[str, float] | None:
        """Return the owner, or the acquisition time for a Paimon that writes no owner, and the time-out."""
        wanted = select(LOCKS.c.lock_owner, LOCKS.c.acquired_at, LOCKS.c.expire_time_seconds)
        with self._database.transaction("look at a lock") as connection:
            row = connection.execute(wanted.where(LOCKS.c.lock_id == self._id(database, table))).first()
        if row is None:
            return None
        owner, acquired_at, expire_seconds = row
        return str(owner or acquired_at), float(expire_seconds) or self.settings.timeout

    def close(self) -> None:
        """Do nothing: connections end with their transactions."""

    def _changed(self, lock_id: str, seen: str, owner: str) -> str | None:
        with self._database.transaction("keep a lock") as connection:
            done = connection.execute(update(LOCKS).where(_is_held_by(lock_id, seen)).values(self._row(owner)))
        return f"{lock_id}{_SEPARATOR}{owner}" if done.rowcount == 1 else None

    def _row(self, owner: str) -> Mapping[str, object]:
        return {
            "lock_owner": owner,
            "acquired_at": func.current_timestamp(),
            "expire_time_seconds": max(1, round(self.settings.timeout)),
        }

    def _id(self, database: str, table: str) -> str:
        return f"{self._database.catalog_key}.{database}.{table}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlLockFactory:
    """``LockFactory`` of the database that ``options`` name."""

    options: Mapping[str, str] = field(repr=False)
    settings: LockSettings

    def create(self) -> SqlLock:
        """Create the lock in any process."""
        return SqlLock(SqlDatabase(self.options), self.settings, SystemClock())


def _is_held_by(lock_id: str, seen: str) -> ColumnElement[bool]:
    if "-" in seen and len(seen.split("-", 1)[0]) == _OWNER_LENGTH:
        return and_(LOCKS.c.lock_id == lock_id, LOCKS.c.lock_owner == seen)
    return and_(LOCKS.c.lock_id == lock_id, LOCKS.c.lock_owner.is_(None))


def _new_owner() -> str:
    return f"{new_uuid().replace('-', '')[:_OWNER_LENGTH]}-0"
