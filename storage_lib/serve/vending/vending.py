"""Credentials for the clients of the server: for one table each, kept until half of their life is over.

A table's places follow from its name alone. Its metadata can name others (``data-file.external-paths``), but then a
client that may write the metadata would get credentials for any path that the role can read.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTimeError
from contextlib import contextmanager
from hashlib import sha256
from threading import BoundedSemaphore, Lock
from typing import NamedTuple

from storage_lib.catalog.table_name import TableName
from storage_lib.errors import InvalidInputError, StorageError, UnavailableError
from storage_lib.iceberg.publish.view_placement import view_root
from storage_lib.io.environment import Clock
from storage_lib.io.file_io_factory import is_same_place
from storage_lib.schema.options.table_options import IcebergStorage
from storage_lib.serve.vending.session_policy import session_policy
from storage_lib.serve.vending.store_credentials import StoreCredentials, TokenService

SECONDS = 3600
"""The life of credentials: the longest that AWS gives a server which has assumed a role itself."""
_TRIED_SECONDS = 900
"""The shortest life that the service gives."""
_LEFT_MIN_MILLIS = SECONDS * 1000 // 2
_KEPT_MAX = 10_000
_ASKED_AT_ONCE = 8
"""Requests to the service. The server has 40 threads for all of its requests."""
_SECONDS_TO_WAIT = 2
"""How long a request waits for one of others; then its client has to ask again."""
_SECONDS_AFTER_FAILURE = 5
"""How long a service that has not answered is not asked again."""
_SESSION_LENGTH_MAX = 64
_DIGEST_LENGTH = 8


class _Key(NamedTuple):
    client: str
    table: str


class Vending:
    """Makes credentials for tables of one warehouse. Thread-safe."""

    def __init__(self, service: TokenService, clock: Clock, *, warehouse: str) -> None:
        """``warehouse`` is the catalog's URL.

        Raises ``InvalidInputError`` for a warehouse that is not in S3, or whose path a policy can't name.
        """
        self._service = service
        self._clock = clock
        self._warehouse = warehouse.rstrip("/")
        self._kept: dict[_Key, StoreCredentials] = {}
        self._asked: dict[_Key, Future[StoreCredentials]] = {}
        self._asks = BoundedSemaphore(_ASKED_AT_ONCE)
        self._rests_until = float("-inf")
        self._lock = Lock()
        self._some_policy = self._policy(TableName.parse("database.table"))

    def try_once(self) -> None:
        """Ask the service for credentials that nobody gets. Raises as ``TokenService.credentials``."""
        self._service.credentials(session="dynamic-table-serve", policy=self._some_policy, seconds=_TRIED_SECONDS)

    def places(self, name: TableName) -> tuple[str, str]:
        """Return the directories of a table's files, and of its Iceberg view if that is in a catalog of its own."""
        table = f"{self._warehouse}/{name.directory}"
        return table, view_root(IcebergStorage.HADOOP_CATALOG, table)

    def credentials(self, client: str, name: TableName, location: str) -> StoreCredentials:
        """Return credentials that read a table for at least half an hour; ``location`` is the table's directory.

        Raises ``InvalidInputError`` for a table elsewhere than the warehouse puts it, otherwise as
        ``TokenService.credentials``.
        """
        if not is_same_place(location, self.places(name)[0]):
            message = "the table is in a directory of its own, for which this server has no credentials"
            raise InvalidInputError(message)
        key = _Key(client, str(name.plain))
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None and kept.expires_millis - self._clock.now_millis() > _LEFT_MIN_MILLIS:
                return kept
            asked = self._asked.get(key)
            mine: Future[StoreCredentials] | None = None
            if asked is None:
                asked = mine = self._asked[key] = Future()
        if mine is not None:
            self._ask(mine, key, name)
        try:
            return asked.result(_SECONDS_TO_WAIT)
        except NotInTimeError:
            raise UnavailableError(_NOT_IN_TIME) from None

    def _ask(self, asked: Future[StoreCredentials], key: _Key, name: TableName) -> None:
        """Ask the service, and let all who wait for the answer have it."""
        try:
            policy = self._policy(name)
            with self._turn():
                made = self._service.credentials(session=_session(key.client), policy=policy, seconds=SECONDS)
        except BaseException as error:
            with self._lock:
                del self._asked[key]
            asked.set_exception(error)
            if not isinstance(error, StorageError):
                raise
            return
        with self._lock:
            del self._asked[key]
            self._keep(key, made)
        asked.set_result(made)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait until few others ask the service. Raises ``UnavailableError`` if that takes long, or it just failed."""
        if self._clock.monotonic() < self._rests_until or not self._asks.acquire(timeout=_SECONDS_TO_WAIT):
            raise UnavailableError(_NOT_IN_TIME)
        try:
            yield
        except UnavailableError:
            self._rests_until = self._clock.monotonic() + _SECONDS_AFTER_FAILURE
            raise
        finally:
            self._asks.release()

    def _keep(self, key: _Key, made: StoreCredentials) -> None:
        now = self._clock.now_millis()
        if len(self._kept) >= _KEPT_MAX:
            self._kept = {each: kept for each, kept in self._kept.items() if now < kept.expires_millis}
        if len(self._kept) < _KEPT_MAX:
            self._kept[key] = made

    def _policy(self, name: TableName) -> str:
        return session_policy(*self.places(name), partition=self._service.partition)


_NOT_IN_TIME = "the token service of the store does not answer in time"


def _session(client: str) -> str:
    """Return a name for the store's audit log: another one for each client, of a length that the service takes."""
    name = f"client-{client}"
    if len(name) <= _SESSION_LENGTH_MAX:
        return name
    digest = sha256(client.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{name[: _SESSION_LENGTH_MAX - _DIGEST_LENGTH - 1]}-{digest}"
