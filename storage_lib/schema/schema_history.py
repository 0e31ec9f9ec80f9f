"""The schemas of a table in order; there is no hint file, the highest number wins (docs/format.md, "Schema")."""

from __future__ import annotations

from storage_lib.errors import CorruptFileError
from storage_lib.io.file_io import FileIO
from storage_lib.io.numbered_files import NumberedFiles
from storage_lib.io.table_paths import TablePaths
from storage_lib.schema.table_schema import TableSchema


class SchemaHistory:
    """Versions of one table's schema, from 0; never rewritten."""

    def __init__(self, file_io: FileIO, paths: TablePaths) -> None:
        self._paths = paths
        self._files = NumberedFiles(file_io, paths.schema_directory, "schema-", hints=False)

    def latest(self) -> TableSchema | None:
        """The newest schema; None if there is no table."""
        newest = self._files.latest_id()
        return None if newest is None else self.load(newest)

    def load(self, schema_id: int) -> TableSchema:
        """One version; ``NotFoundError`` if there is none, ``CorruptFileError`` if the file is no schema."""
        try:
            return TableSchema.from_json(self._files.load(schema_id))
        except CorruptFileError as error:
            message = f"{self._paths.schema_path(schema_id)}: {error}"
            raise CorruptFileError(message) from error

    def append(self, schema: TableSchema) -> bool:
        """Make this the next version; False if somebody else has taken its number."""
        return self._files.create(schema.id, schema.to_json())
