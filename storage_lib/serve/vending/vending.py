"""Credentials for the clients of the server: for one table each, kept until half of their life is over.

A table's places follow from its name alone. Its metadata can name others (``data-file.external-paths``), but whoever
may write the metadata would get credentials for any path that the role can read.
"""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

from storage_lib.catalog.table_name import TableName
from storage_lib.errors import InvalidInputError
from storage_lib.io.environment import Clock
from storage_lib.io.file_io_factory import is_same_place
from storage_lib.serve.vending.session_policy import session_policy
from storage_lib.serve.vending.store_credentials import StoreCredentials, TokenService

SECONDS = 3600
"""The life of credentials: the longest that AWS gives a server which has assumed a role itself."""
_TRIED_SECONDS = 900
"""The shortest life that the service gives."""
_LEFT_MIN_MILLIS = SECONDS * 1000 // 2
_KEPT_MAX = 10_000
_SESSION_LENGTH_MAX = 64


class _Key(NamedTuple):
    client: str
    table: str
    may_write: bool


class Vending:
    """Makes credentials for tables of one warehouse. Thread-safe."""

    def __init__(self, service: TokenService, clock: Clock, *, warehouse: str, writers_may_list: bool = False) -> None:
        """``warehouse`` is the catalog's URL; with ``writers_may_list``, writers can list the names in its bucket.

        Raises ``InvalidInputError`` for a warehouse that is not in S3, or whose path a policy can't name.
        """
        self._service = service
        self._clock = clock
        self._warehouse = warehouse.rstrip("/")
        self._writers_may_list = writers_may_list
        self._kept: dict[_Key, StoreCredentials] = {}
        self._lock = Lock()
        session_policy([f"{self._warehouse}/database.db/table"])

    def try_once(self) -> None:
        """Ask the service for credentials that nobody gets. Raises ``UnavailableError`` if it gives none."""
        policy = session_policy([f"{self._warehouse}/database.db/table"], partition=self._service.partition)
        self._service.credentials(session="dynamic-table-serve", policy=policy, seconds=_TRIED_SECONDS)

    def places(self, name: TableName) -> tuple[str, str]:
        """Return the directories of a table's files, and of its Iceberg view if that is in a catalog of its own."""
        return (
            f"{self._warehouse}/{name.database}.db/{name.table}",
            f"{self._warehouse}/iceberg/{name.database}/{name.table}",
        )

    def credentials(self, client: str, name: TableName, location: str, *, may_write: bool = False) -> StoreCredentials:
        """Return credentials that live for at least half an hour; ``location`` is the directory the table is in.

        Raises ``InvalidInputError`` for a table elsewhere than the warehouse puts it, ``UnavailableError`` if the
        token service gives none.
        """
        places = self.places(name)
        if not is_same_place(location, places[0]):
            message = "the table is in a directory of its own, for which this server has no credentials"
            raise InvalidInputError(message)
        key, now = _Key(client, str(name.plain), may_write), self._clock.now_millis()
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and kept.expires_millis - now > _LEFT_MIN_MILLIS:
            return kept
        made = self._service.credentials(
            session=f"client-{client}"[:_SESSION_LENGTH_MAX],
            policy=session_policy(
                places,
                partition=self._service.partition,
                may_write=may_write,
                may_list_all=may_write and self._writers_may_list,
            ),
            seconds=SECONDS,
        )
        with self._lock:
            if len(self._kept) >= _KEPT_MAX:
                self._kept = {each: kept for each, kept in self._kept.items() if now < kept.expires_millis}
            if len(self._kept) < _KEPT_MAX:
                self._kept[key] = made
        return made
