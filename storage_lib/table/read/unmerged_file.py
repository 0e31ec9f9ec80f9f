"""A data file whose rows need no merge, described for an engine that reads it by itself."""

from __future__ import annotations

from dataclasses import dataclass

from storage_lib.file_store.manifest.manifest_entry import ManifestEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmergedFile:
    """``path`` is for ``FileIO``: an absolute path of this machine, or a URL.

    Rows at ``ReadBuilder.deleted_rows`` are not rows of the table, nor are rows of kind -U or -D (``has_retracts``).
    """

    path: str
    entry: ManifestEntry

    @property
    def schema_id(self) -> int:
        """Schema under which the file was written."""
        return self.entry.file.schema_id

    @property
    def extension(self) -> str:
        """Extension of the file name, which tells its format."""
        return self.path.rpartition(".")[2]

    @property
    def size_bytes(self) -> int:
        """Size on storage."""
        return self.entry.file.file_size

    @property
    def has_deleted_rows(self) -> bool:
        """Whether a deletion vector marks rows of the file."""
        return self.entry.file.deletion_file is not None

    @property
    def has_retracts(self) -> bool:
        """Whether rows may be of kind -U or -D."""
        return self.entry.file.delete_row_count != 0
