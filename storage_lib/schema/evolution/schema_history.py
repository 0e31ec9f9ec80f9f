"""Versions of a table's schema: find the latest, load, append if absent (docs/format.md, 1.3).

There is no hint file: the highest number wins.
"""

from __future__ import annotations

from collections.abc import Callable

from storage_lib.errors import CorruptFileError, InvalidInputError, NotFoundError
from storage_lib.io.file_io import FileIO
from storage_lib.io.table_directory.numbered_files import DisplacedError, NumberedFiles
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.schema.options.table_options import UUID_OPTION
from storage_lib.schema.table_schema import TableSchema


class SchemaHistory:
    """The schemas of one table. Thread-safe."""

    def __init__(self, file_io: FileIO, paths: TablePaths) -> None:
        self._files = NumberedFiles(file_io, paths.schema_directory, "schema-", hints=False)

    def latest_id(self) -> int | None:
        """Return the id of the newest version; None if the table does not exist."""
        return self._files.latest_id()

    def latest(self) -> TableSchema | None:
        """Return the newest version; None if the table does not exist."""
        latest_id = self.latest_id()
        return None if latest_id is None else self.load(latest_id)

    def load(self, schema_id: int) -> TableSchema:
        """Return one version.

        Raises ``NotFoundError`` if it does not exist, ``CorruptFileError`` if it is not a schema and
        ``InvalidInputError`` for column types that this version of the library does not support.
        """
        return self.decoded(schema_id, self.read(schema_id))

    def read(self, schema_id: int) -> bytes:
        """Return the file of one version. Raises ``NotFoundError`` if it does not exist."""
        return self._files.load(schema_id)

    def decoded(self, schema_id: int, data: bytes) -> TableSchema:
        """Decode the bytes that ``read`` returned. Raises as ``load`` does, except ``NotFoundError``."""
        path = self._files.path(schema_id)
        try:
            schema = TableSchema.from_json(data)
        except (CorruptFileError, InvalidInputError) as error:
            raise type(error)(f"{path}: {error}") from error
        if schema.id != schema_id:
            message = f"{path} holds the schema of id {schema.id}; it was copied or renamed by hand"
            raise CorruptFileError(message)
        return schema

    def append(self, schema: TableSchema, *, has_gaps: bool = False) -> bool:
        """Store the schema as the version of its id; False if that version exists.

        With ``has_gaps`` the version before it need not be there, as in a copy of some versions of another table.
        Raises ``NotFoundError`` if the table was dropped, or dropped and recreated, while this process was suspended.
        """

        def follows(previous: bytes) -> bool:
            return self.decoded(schema.id - 1, previous).options.get(UUID_OPTION) == schema.options.get(UUID_OPTION)

        try:
            is_next = schema.id > 0 and not has_gaps
            return self._files.create(schema.id, schema.to_json(), follows=follows if is_next else None)
        except DisplacedError as error:
            message = f"{self._files.path(schema.id)}: the table was dropped while it was altered; load it again"
            raise NotFoundError(message) from error

    def alter(self, change: Callable[[TableSchema], TableSchema]) -> TableSchema:
        """Apply ``change`` to the newest version and append the result; retry after a concurrent change.

        Returns the version with the change; writes nothing if ``change`` returns its argument. Raises
        ``NotFoundError`` if there is no version, and the errors of ``change``.
        """
        while True:
            newest = self.latest()
            if newest is None:
                message = f"there is no table at {self._files.path(0)} to alter"
                raise NotFoundError(message)
            changed = change(newest)
            # A store that retries a write may report that the name is taken, by this same schema.
            if changed is newest or self.append(changed) or self.load(changed.id) == changed:
                return changed

    def ids(self) -> list[int]:
        """Return the ids of all versions, ascending."""
        return self._files.ids()
