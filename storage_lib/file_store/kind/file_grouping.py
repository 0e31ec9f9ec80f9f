"""Which files of a bucket hang together: all that planning has to know of a kind of table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta


class FileGrouping(Protocol):
    """Decides; does no I/O."""

    def groups(self, files: Sequence[DataFileMeta]) -> Sequence[Sequence[DataFileMeta]]:
        """One bucket's files cut into groups that can be read apart from one another, in an order worth reading in."""

    def independent(self, files: Sequence[DataFileMeta]) -> Sequence[DataFileMeta]:
        """Of one bucket's files those that may be left out if no row in them matches: they hide no other's rows."""
