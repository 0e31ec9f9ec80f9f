"""Grouping of a bucket's files: the only part of a table's kind that planning needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta


class FileGrouping(Protocol):
    """Groups files without I/O."""

    def groups(self, files: Sequence[DataFileMeta]) -> Sequence[Sequence[DataFileMeta]]:
        """Divide one bucket's files into groups that can be read separately, in a good order for reading."""

    def unmerged(self, files: Sequence[DataFileMeta]) -> Sequence[DataFileMeta]:
        """Return those of all files of one bucket whose rows are rows of the table, without a merge with other rows.

        Rows of theirs that are marked as deleted, or are deletions themselves, are not rows of the table.
        """

    def independent(self, files: Sequence[DataFileMeta]) -> Sequence[DataFileMeta]:
        """Return those files of one bucket that may be skipped if none of their rows matches: they hide no others."""
