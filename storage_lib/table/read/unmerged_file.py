"""A data file whose rows need no merge, described for an engine that reads it by itself."""

from __future__ import annotations

from dataclasses import dataclass

from storage_lib.file_store.manifest.manifest_entry import ManifestEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmergedFile:
    """``path`` is for ``FileIO``: an absolute path of this machine, or a URL.

    Rows at ``ReadBuilder.deleted_rows`` are not rows of the table, nor are rows of kind -U or -D.
    """

    path: str
    entry: ManifestEntry

    @property
    def size_bytes(self) -> int:
        """Size on storage."""
        return self.entry.file.file_size
