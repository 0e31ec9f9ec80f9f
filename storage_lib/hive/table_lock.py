"""The exclusive lock of a metastore on a table's name, which Iceberg's and Paimon's Hive catalogs take as well."""

from __future__ import annotations

import socket

from pymetastore.hive_metastore.ttypes import (
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    NoSuchLockException,
    TxnAbortedException,
    TxnOpenException,
    UnlockRequest,
)

from storage_lib.hive.hive_metastore import HiveMetastore

USER = "dynamic-tables"
GONE = (NoSuchLockException, TxnAbortedException, TxnOpenException)
"""What the metastore raises for a lock that it has taken away, after some minutes without a heartbeat."""


def request_lock(metastore: HiveMetastore, database: str, table: str) -> int | None:
    """Return the id of the lock; None if it is not granted at once: the request is withdrawn.

    Raises ``UnavailableError`` if the metastore does not answer.
    """
    wanted = LockComponent(type=LockType.EXCLUSIVE, level=LockLevel.TABLE, dbname=database, tablename=table)
    request = LockRequest(component=[wanted], user=USER, hostname=socket.gethostname())
    answer = metastore.ask("lock a table", lambda client: client.lock(request))
    if answer.state == LockState.ACQUIRED:
        return int(answer.lockid)
    give_back(metastore, answer.lockid)
    return None


def give_back(metastore: HiveMetastore, lock_id: int) -> None:
    """Unlock; does nothing if the lock is gone. Raises as ``request_lock``."""
    request = UnlockRequest(lockid=lock_id)
    try:
        metastore.ask("unlock a table", lambda client: client.unlock(request))
    except GONE:
        return
