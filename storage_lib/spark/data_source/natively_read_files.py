"""Which files of a snapshot Spark's own readers read, so that the data source leaves them out."""

from __future__ import annotations

import json
from dataclasses import dataclass

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta


@dataclass(frozen=True, slots=True, order=True)
class FileGroup:
    """Unmerged files that are read alike: by schema, file extension, and whether rows have to be left out."""

    schema_id: int
    extension: str
    has_deleted_rows: bool
    has_retracts: bool


@dataclass(frozen=True, slots=True)
class NativeFiles:
    """The unmerged files of these groups at one snapshot, whatever filter a plan of that snapshot is pruned by."""

    snapshot_id: int
    groups: frozenset[FileGroup]

    def to_json(self) -> str:
        """Return the value as an option of a statement."""
        groups = [[g.schema_id, g.extension, g.has_deleted_rows, g.has_retracts] for g in sorted(self.groups)]
        return json.dumps({"snapshot": self.snapshot_id, "groups": groups})

    @classmethod
    def parse(cls, text: str) -> NativeFiles:
        """Parse ``to_json``. Raises ``InvalidInputError`` for any other text."""
        try:
            value = json.loads(text)
            return cls(int(value["snapshot"]), frozenset(FileGroup(*group) for group in value["groups"]))
        except (ValueError, KeyError, TypeError) as error:
            message = f"{text[:200]!r} does not name files that Spark reads by itself; leave this internal option out"
            raise InvalidInputError(message) from error


def group_of(file: DataFileMeta) -> FileGroup:
    """Return the group of an unmerged file. Rows of kind -U and -D are retracts, not rows of the table."""
    return FileGroup(
        schema_id=file.schema_id,
        extension=file.file_name.rpartition(".")[2],
        has_deleted_rows=file.deletion_file is not None,
        has_retracts=file.delete_row_count != 0,
    )
