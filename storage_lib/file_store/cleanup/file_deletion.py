"""Deletes files of a table by the paths in its metadata, only inside the table's directories.

Metadata can be damaged or malicious. So a file outside the table's own directory is only deleted
if it is where a data file would be (partition, bucket) below a directory that a schema of the table declares, and that
directory is neither claimed by another table nor a part of one.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable

from storage_lib.errors import CorruptFileError, InvalidInputError, NotFoundError
from storage_lib.file_store.cleanup.external_claims import ExternalClaims
from storage_lib.file_store.snapshot.branch_directory import BranchDirectory
from storage_lib.io.environment import Environment
from storage_lib.io.file_io import FileIO
from storage_lib.io.table_directory.table_paths import MAIN_BRANCH, TablePaths
from storage_lib.schema.evolution.schema_history import SchemaHistory
from storage_lib.schema.options.external_paths import declared_directories, io_path
from storage_lib.schema.table_schema import TableSchema

_LOGGER = logging.getLogger(__name__)
_IN_BUCKET = r"bucket-(?:\d+|postpone)/(?:[01]{4}/[01]{4}/[01]{4}/[01]{8}/)?[^/]+"


class FileDeletion:
    """Deletes files of one table. ``delete`` logs a warning instead of raising for a file that it refuses."""

    def __init__(self, environment: Environment, paths: TablePaths, schema: TableSchema) -> None:
        self._environment = environment
        self._paths = paths
        self._schema = schema
        self._place = re.compile(r"(?:[^/=]+=[^/]*/)" + f"{{{len(schema.partition_keys)}}}" + _IN_BUCKET)
        self._declared: tuple[str, ...] | None = None
        self._may_delete_below: dict[str, bool] = {}

    def delete(self, path: str) -> None:
        """Delete one file of the table, if it exists."""
        root, files = self._paths.root, self._environment.file_io
        if not path.startswith(f"{root}/"):
            found = self._external_root(path)
            if found is None:
                _LOGGER.warning("%s is not deleted: it is in no data directory of the table at %s", path, root)
                return
            if not self._is_open(found):
                _LOGGER.warning("%s is not deleted: %s belongs to another table than %s", path, found, root)
                return
            root, files = found, self._environment.stores
        files.delete(path, below=root)

    def delete_all(self, paths: Iterable[str]) -> None:
        """Delete files in the given order."""
        for path in paths:
            self.delete(path)

    def learn(self) -> None:
        """Read the declared directories of all schemas, before some schemas are deleted."""
        if self._declared is None:
            self._declared = declared_by_any_schema(self._environment.file_io, self._paths)

    def _external_root(self, path: str) -> str | None:
        found = _root_among(declared_directories(self._schema.options), path, self._place)
        if found is None:
            self.learn()
            found = _root_among(self._declared or (), path, self._place)
        return found

    def _is_open(self, directory: str) -> bool:
        known = self._may_delete_below.get(directory)
        if known is None:
            known = not ExternalClaims(self._environment.stores, self._paths.root).is_others(directory)
            self._may_delete_below[directory] = known
        return known


def declared_by_any_schema(file_io: FileIO, paths: TablePaths) -> tuple[str, ...]:
    """Return every directory that a schema of the table or of a branch declares. Unreadable schemas are skipped."""
    found: dict[str, None] = {}
    try:
        branches = BranchDirectory(file_io, paths).all_names()
    except (CorruptFileError, InvalidInputError) as error:
        _LOGGER.warning("the data directories that branches of %s declare are not known: %s", paths.root, error)
        branches = [MAIN_BRANCH]
    for branch in branches:
        of_branch = paths.of_branch(branch)
        for schema_id in SchemaHistory(file_io, of_branch).ids():
            path = of_branch.schema_path(schema_id)
            try:
                options = json.loads(file_io.read_bytes(path))["options"]
                found.update(dict.fromkeys(declared_directories({str(key): str(options[key]) for key in options})))
            except (NotFoundError, CorruptFileError, InvalidInputError, ValueError, TypeError, KeyError) as error:
                _LOGGER.warning("the data directories that %s declares are not known: %s", path, error)
    return tuple(found)


def _root_among(urls: Iterable[str], path: str, place: re.Pattern[str]) -> str | None:
    if any(part in ("", ".", "..") for part in path.rpartition("://")[2].split("/")[1:]):
        return None
    for url in urls:
        root = io_path(url)
        if path.startswith(f"{root}/") and place.fullmatch(path.removeprefix(f"{root}/")) is not None:
            return root
    return None
