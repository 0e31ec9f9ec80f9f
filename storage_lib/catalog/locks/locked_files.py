"""Put a catalog's files under its lock if they need it, and choose the lock of a file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from storage_lib.catalog.locks.catalog_lock import CatalogLock, Hold, LockFactory
from storage_lib.errors import InvalidInputError
from storage_lib.io.combined.locked_file_io import LockedFileIO
from storage_lib.io.environment import Environment
from storage_lib.schema.options.catalog_options import LOCK_ENABLED
from storage_lib.schema.options.option_values import parse_boolean

_SUFFIX = ".db"
_OF_DATABASE = "$database"
_OF_PATH = "$path"


def with_lock(
    environment: Environment, warehouse: str, options: Mapping[str, str], factory: LockFactory | None
) -> Environment:
    """Return the environment with files under the lock if the store needs it or ``lock.enabled`` is set.

    Raises ``InvalidInputError`` for a store without create-if-absent, if no lock is configured.
    """
    lacking = not environment.file_io.has_create_if_absent
    wanted = _enabled(options)
    if lacking and (factory is None or wanted is False):
        message = (
            f"the store of {warehouse} has no create-if-absent, so two writers could create the same snapshot; open "
            f"the catalog with metastore=sql or hive, whose lock keeps them apart, and without {LOCK_ENABLED}=false"
        )
        raise InvalidInputError(message)
    if wanted and factory is None:
        message = f"option {LOCK_ENABLED}=true needs a catalog that has a lock: metastore=sql or hive"
        raise InvalidInputError(message)
    if factory is None or not (lacking or wanted):
        return environment
    return replace(environment, file_io=LockedFileIO(environment.file_io, _Locks(warehouse, factory)))


@dataclass
class _Locks:
    """Locks of the tables below a warehouse; opened at the first use in a process."""

    warehouse: str
    factory: LockFactory
    _lock: CatalogLock | None = None

    def __call__(self, path: str) -> AbstractContextManager[Hold]:
        if self._lock is None:
            self._lock = self.factory.create()
        return self._lock.hold(*self.name_of(path))

    def __reduce__(self) -> tuple[type[_Locks], tuple[str, LockFactory]]:
        """Pickle without connections."""
        return _Locks, (self.warehouse, self.factory)

    def name_of(self, path: str) -> tuple[str, str]:
        """Return database and table whose lock protects a path, with the names that Paimon's catalogs use."""
        parts = path.removeprefix(f"{self.warehouse}/").split("/")
        if path.startswith(f"{self.warehouse}/") and len(parts) > 1 and parts[0].endswith(_SUFFIX):
            return parts[0].removesuffix(_SUFFIX), parts[1] if len(parts) > 2 else _OF_DATABASE
        directory = path.rpartition("/")[0]
        return _OF_PATH, hashlib.sha256(directory.encode()).hexdigest()[:32]


def _enabled(options: Mapping[str, str]) -> bool | None:
    text = options.get(LOCK_ENABLED)
    if text is None:
        return None
    try:
        return parse_boolean(text)
    except ValueError as error:
        message = f"option {LOCK_ENABLED} is {text!r}; {error}"
        raise InvalidInputError(message) from error
