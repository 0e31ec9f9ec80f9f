"""name-1, name-2, ...: read the latest, create the next or lose the race. Under snapshots and schemas alike.

With ``hints`` the files LATEST and EARLIEST hold a number, so that the directory need not be listed: LATEST is
trusted if no later file exists, EARLIEST if its file does (docs/format.md, 1.4). The file comes first and the hint
second, so LATEST never says more than there is.
"""

from __future__ import annotations

from storage_lib.errors import NotFoundError
from storage_lib.io.file_io import FileIO


class NumberedFiles:
    """The numbered files of one directory. Numbers are contiguous; old ones may be gone. Thread-safe."""

    def __init__(self, file_io: FileIO, directory: str, prefix: str, *, hints: bool) -> None:
        self._file_io = file_io
        self._directory = directory
        self._prefix = prefix
        self._hints = hints

    def path(self, number: int) -> str:
        """The path of file ``number``."""
        return f"{self._directory}/{self._prefix}{number}"

    def latest_id(self) -> int | None:
        """The highest number; None if there is no file."""
        hint = self._hint("LATEST")
        if hint is not None:
            number = hint
            # Whoever crashed between file and hint left the hint one behind; a busy writer, a few.
            while self._file_io.exists(self.path(number + 1)):
                number += 1
            if number > hint or self._file_io.exists(self.path(number)):
                return number
        return max(self.ids(), default=None)

    def earliest_id(self) -> int | None:
        """The lowest number that is there; None if there is no file."""
        hint = self._hint("EARLIEST")
        if hint is not None and self._file_io.exists(self.path(hint)):
            return hint
        return min(self.ids(), default=None)

    def ids(self) -> list[int]:
        """All numbers, ascending, from the directory itself."""
        names = (entry.name for entry in self._file_io.list_directory(self._directory))
        return sorted(
            int(rest) for name in names if name.startswith(self._prefix) and (rest := name[len(self._prefix) :]).isdigit()
        )

    def load(self, number: int) -> bytes:
        """The content of one file; ``NotFoundError`` if it is not there."""
        return self._file_io.read_bytes(self.path(number))

    def create(self, number: int, data: bytes) -> bool:
        """Create file ``number``, or return False if it is taken; errors as ``FileIO.create_if_absent``."""
        if not self._file_io.create_if_absent(self.path(number), data):
            return False
        if self._hints:
            self._write_hint("LATEST", number)
            if not self._file_io.exists(f"{self._directory}/EARLIEST"):
                self._write_hint("EARLIEST", number)
        return True

    def write_earliest(self, number: int) -> None:
        """Say that files below ``number`` are gone, or about to go."""
        self._write_hint("EARLIEST", number)

    def _hint(self, name: str) -> int | None:
        if not self._hints:
            return None
        try:
            return int(self._file_io.read_bytes(f"{self._directory}/{name}"))
        except (NotFoundError, ValueError):
            return None

    def _write_hint(self, name: str, number: int) -> None:
        self._file_io.replace(f"{self._directory}/{name}", str(number).encode())
