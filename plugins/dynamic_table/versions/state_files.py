"""A state store of Airflow 3.3 in files, for the versions before it, which have none.

    <directory>/<digest of the key>.json           for thirty days
                <digest of the key>.lasting.json   until it is deleted

A file is replaced atomically. The directory's siblings are those of other tasks of a DAG: what has expired there is
deleted when this one is created.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import time
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from dynamic_table.files.private_files import make_private_directory, write_private

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["FileStateStore", "digest"]

KEPT_SECONDS = 30 * 24 * 3600.0
LASTING = ".lasting.json"


class FileStateStore:
    """State store with the methods of Airflow's, in a directory. One task or trigger at a time uses it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, or ``default``."""
        for path in self._paths(key):
            with suppress(FileNotFoundError):
                if not _has_expired(path):
                    return json.loads(path.read_text(encoding="utf-8"))["value"]
        return default

    def set(self, key: str, value: Any, *, retention: timedelta | None = None) -> None:
        """Store a JSON value for thirty days, or with ``timedelta.max`` (``NEVER_EXPIRE``) until it is deleted."""
        if not self._directory.is_dir():
            _delete_expired(self._directory.parent)
            make_private_directory(self._directory)
        passing, lasting = self._paths(key)
        path, other = (lasting, passing) if retention == timedelta.max else (passing, lasting)
        write_private(path, json.dumps({"key": key, "value": value}))
        other.unlink(missing_ok=True)

    def delete(self, key: str) -> None:
        """Delete a key; a missing one is ignored."""
        for path in self._paths(key):
            path.unlink(missing_ok=True)

    async def aget(self, key: str, default: Any = None) -> Any:
        """As ``get``, in a thread: the triggerer's event loop has to go on while a file system is slow."""
        return await asyncio.to_thread(self.get, key, default)

    async def aset(self, key: str, value: Any) -> None:
        """As ``set``, until it is deleted, as a store of an asset does it."""
        await asyncio.to_thread(self.set, key, value, retention=timedelta.max)

    async def adelete(self, key: str) -> None:
        """As ``delete``."""
        await asyncio.to_thread(self.delete, key)

    def _paths(self, key: str) -> tuple[Path, Path]:
        name = digest(key)
        return self._directory / f"{name}.json", self._directory / f"{name}{LASTING}"


def digest(text: str) -> str:
    """Return a name of a file for a text of any length and characters."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _has_expired(path: Path) -> bool:
    """Return whether a file or directory was last changed too long ago; raises FileNotFoundError."""
    return not path.name.endswith(LASTING) and time.time() - path.stat().st_mtime > KEPT_SECONDS


def _delete_expired(of_dag: Path) -> None:
    """Delete the directories of tasks whose entries have all expired."""
    with suppress(FileNotFoundError):
        for directory in list(of_dag.iterdir()):
            with suppress(FileNotFoundError, NotADirectoryError):
                if _has_expired(directory) and all(_has_expired(path) for path in list(directory.iterdir())):
                    shutil.rmtree(directory, ignore_errors=True)
