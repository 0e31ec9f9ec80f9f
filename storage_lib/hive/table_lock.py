"""The exclusive lock of a metastore on a table's name, which Iceberg's and Paimon's Hive catalogs take as well.

A metastore takes away locks without a heartbeat only if its housekeeping runs, which by default it does not. So the
lock of a killed process of this library is given back by the next one that finds it.
"""

from __future__ import annotations

import logging
import socket
from typing import Any

from pymetastore.hive_metastore.ttypes import (
    HeartbeatRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    NoSuchLockException,
    ShowLocksRequest,
    TxnAbortedException,
    TxnOpenException,
    UnlockRequest,
)

from storage_lib.hive.hive_metastore import HiveMetastore

_LOGGER = logging.getLogger(__name__)
USER = "dynamic-tables"
ABANDONED_MILLIS = 300_000
"""Time without a heartbeat after which a lock of ours is left over: no process of ours keeps one for so long."""
_GONE = (NoSuchLockException, TxnAbortedException, TxnOpenException)
"""What the metastore raises for a lock that is not there any more."""


def request_lock(metastore: HiveMetastore, database: str, table: str) -> int | None:
    """Return the id of the lock; None if it is not granted at once: the request is withdrawn.

    Raises ``UnavailableError`` if the metastore does not answer.
    """
    wanted = LockComponent(type=LockType.EXCLUSIVE, level=LockLevel.TABLE, dbname=database, tablename=table)
    request = LockRequest(component=[wanted], user=USER, hostname=socket.gethostname())
    answer = metastore.ask("lock a table", lambda client: client.lock(request))
    if answer.state == LockState.ACQUIRED:
        return int(answer.lockid)
    try:
        _give_back_abandoned(metastore, database, table, answer.lockid)
    finally:
        give_back(metastore, answer.lockid)
    return None


def give_back(metastore: HiveMetastore, lock_id: int) -> None:
    """Unlock; does nothing if the lock is gone. Raises as ``request_lock``."""
    request = UnlockRequest(lockid=lock_id)
    try:
        metastore.ask("unlock a table", lambda client: client.unlock(request))
    except _GONE:
        return


def beat(metastore: HiveMetastore, lock_id: int) -> bool:
    """Send a heartbeat; return whether the lock is still there. Raises as ``request_lock``."""
    request = HeartbeatRequest(lockid=lock_id)
    try:
        metastore.ask("keep a lock", lambda client: client.heartbeat(request))
    except _GONE:
        return False
    return True


def locks_of(metastore: HiveMetastore, database: str, table: str) -> list[Any]:
    """Return the locks of a name, and the requests that wait for it. Raises as ``request_lock``."""
    request = ShowLocksRequest(dbname=database, tablename=table)
    return list(metastore.ask("look at a lock", lambda client: client.show_locks(request)).locks or ())


def _give_back_abandoned(metastore: HiveMetastore, database: str, table: str, ours: int) -> None:
    """Unlock the locks before ``ours`` that processes of this library have left, by the metastore's clock."""
    locks = locks_of(metastore, database, table)
    now_millis = next((each.lastheartbeat for each in locks if each.lockid == ours), 0)
    for each in locks:
        silent_millis = now_millis - each.lastheartbeat
        if each.user == USER and each.lockid < ours and each.lastheartbeat and silent_millis > ABANDONED_MILLIS:
            _LOGGER.warning(
                "lock %s on %s.%s, which a process on %s took and left %.0f s ago, is given back",
                each.lockid,
                database,
                table,
                each.hostname,
                silent_millis / 1000,
            )
            give_back(metastore, each.lockid)
