"""The states of a table of another format, one after each commit, and the data files between two of them.

A state has a number; numbers grow from commit to commit, and 0 is the table without rows. A file is the same in two
states only if the same rows of it are in both, so the rows of the files that are in one state only are the change.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage_lib.errors import SnapshotExpiredError

if TYPE_CHECKING:
    from storage_lib.lakes.lake_version import LakeVersion
    from storage_lib.schema.table_schema import TableSchema


@dataclass(frozen=True, slots=True)
class LakeFile:
    """A data file with those of its rows that are in a state. ``row_count`` is None if it is not known."""

    path: str
    size_bytes: int
    row_count: int | None


LakeFiles = Mapping[str, LakeFile]
"""The files of a state, by keys that tell which rows of a file are deleted."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """Files whose rows were removed, as the state ``before`` has them, and added, as ``after`` has them."""

    removed: tuple[LakeFile, ...]
    added: tuple[LakeFile, ...]

    @property
    def size_bytes(self) -> int:
        """Size of all files."""
        return sum(each.size_bytes for each in (*self.removed, *self.added))

    @property
    def row_count(self) -> int:
        """Number of the rows; at least one for each file."""
        return sum(max(1, each.row_count or 0) for each in (*self.removed, *self.added))


class LakeHistory(ABC):
    """The states of one table, as they were known when it was opened."""

    kind: str
    """Option ``type`` of the catalogs that have such tables."""
    name: str
    """``catalog.database.table``."""
    table_id: str
    """Identifies the table; one that is created again under the same name has another."""
    newest: int
    """Number of the newest state."""

    @abstractmethod
    def schema(self) -> TableSchema:
        """Return the table's columns of today. Raises ``InvalidInputError`` for a type that tables here don't have."""

    @abstractmethod
    def schema_at(self, number: int) -> TableSchema:
        """Return the columns under which the rows of a state are read; raises as ``mark``."""

    @abstractmethod
    def mark(self, number: int) -> str:
        """Return what tells the commit from every other with this number. Raises ``SnapshotExpiredError``."""

    @abstractmethod
    def time_millis(self, number: int) -> int:
        """Return the time of a commit in epoch milliseconds; raises as ``mark``."""

    @abstractmethod
    def named(self, number: int) -> str:
        """Return a state in the words of its format."""

    @abstractmethod
    def version(self, number: int) -> LakeVersion:
        """Return a state to read its rows."""

    @abstractmethod
    def following(self, number: int) -> int | None:
        """Return the state after ``number``; None if it is not known."""

    @abstractmethod
    def files(self, number: int) -> LakeFiles | None:
        """Return the files of a state; None if only the whole table can be read. Raises as ``mark``."""

    @abstractmethod
    def listed(self, number: int) -> Sequence[LakeFile]:
        """Return the files of a state, with all of their rows, also where ``files`` are None; raises as ``mark``."""

    def whole_size(self, number: int) -> tuple[int, int]:
        """Return the bytes of the files of a state and the rows in them, as far as they are known; raises as ``mark``.

        Rows of a file may be deleted, and are counted as well.
        """
        files = self.listed(number) if number else ()
        return sum(each.size_bytes for each in files), sum(each.row_count or 0 for each in files)

    @abstractmethod
    def rearrangements(self, before: int, after: int) -> Iterable[tuple[int, int]]:
        """Return the commits between two states that kept all rows, and only moved them into other files.

        Each is a pair of the state before it and the one after it.
        """

    @abstractmethod
    def missing(self, files: Iterable[LakeFile]) -> str | None:
        """Return the path of one of the files that does not exist any more; None if all exist."""

    def change(self, before: int, after: int) -> FileChange | None:
        """Return the files between two states that have all changed rows; None if the whole table has to be read.

        Files that were only rearranged are left out where that is possible. Raises ``SnapshotExpiredError`` for a state
        that is gone, and if a file of ``before`` is missing.
        """
        old, new = self._files(before), self._files(after)
        if old is None or new is None:
            there = {each.path for each in self.listed(after)}
            self.refuse_missing([each for each in self.listed(before) if each.path not in there], before)
            return None
        removed = [old[key] for key in old.keys() - new.keys()]
        self.refuse_missing(removed, before)
        total = Counter(new.keys())
        total.subtract(old.keys())
        net = Counter(total)
        for first, second in self.rearrangements(before, after):
            earlier, later = self._files(first), self._files(second)
            if earlier is None or later is None:
                net = total
                break
            net.subtract(later.keys())
            net.update(earlier.keys())
        if any((weight < 0 and key not in old) or (weight > 0 and key not in new) for key, weight in net.items()):
            # A file that was written and rearranged in between: it may be gone.
            net = total
        return FileChange(
            removed=tuple(old[key] for key, weight in sorted(net.items()) if weight < 0),
            added=tuple(new[key] for key, weight in sorted(net.items()) if weight > 0),
        )

    def refuse_missing(self, files: Iterable[LakeFile], number: int) -> None:
        """Raise ``SnapshotExpiredError`` if one of the files of a state does not exist any more."""
        path = self.missing(files)
        if path is not None:
            message = f"{self.named(number)} of {self.name} has expired: its file {path} is gone"
            raise SnapshotExpiredError(message)

    def _files(self, number: int) -> LakeFiles | None:
        return {} if number == 0 else self.files(number)
