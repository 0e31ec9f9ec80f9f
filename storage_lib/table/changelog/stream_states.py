"""Locations of one stream's states, one per bucket (``scan.normalize=state``)."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import replace

from storage_lib.io.environment import Environment
from storage_lib.io.file_io_factory import file_io_of, warehouse_root
from storage_lib.schema.table_schema import TableSchema
from storage_lib.table.changelog.changelog_state import ChangelogState


class StreamStates:
    """Opens the states of one stream in ``directory``, a path or URL that only this stream uses.

    None: a temporary directory on the local disk, deleted with this object. ``store_options`` configure access to the
    storage.
    """

    def __init__(
        self,
        *,
        table: str,
        uuid: str,
        environment: Environment,
        schema: TableSchema,
        directory: str | None,
        store_options: Mapping[str, str],
    ) -> None:
        given = tempfile.mkdtemp(prefix="stream-state-") if directory is None else directory
        if directory is None:
            weakref.finalize(self, shutil.rmtree, given, ignore_errors=True)
        self._root = f"{warehouse_root(given)}/{uuid}"
        self._table = table
        self._environment = replace(environment, file_io=file_io_of(given, store_options))
        self._schema = schema
        self._open: dict[tuple[int, int], ChangelogState] = {}

    def of(self, bucket: int, began_with: int) -> ChangelogState:
        """Return the state of a bucket for a stream that began with a snapshot (0: none). Thread-safe."""
        known = self._open.get((bucket, began_with))
        if known is None:
            directory = f"{self._root}/from-{began_with}/bucket-{bucket}"
            known = ChangelogState(
                table=self._table, environment=self._environment, directory=directory, schema=self._schema
            )
            self._open[bucket, began_with] = known
        return known
