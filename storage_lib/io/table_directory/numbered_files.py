"""Numbered files ``<prefix>1, <prefix>2, ...`` of one directory: find the latest, load, create the next atomically.

With hints, LATEST and EARLIEST hold a number as text (docs/format.md, 1.4). LATEST is written after the file that it
names, so it may be too low but never too high. Both are optional, and every hint is verified.
"""

from __future__ import annotations

from functools import partial

from storage_lib.errors import CommitOutcomeUnknownError, CorruptFileError, NotFoundError
from storage_lib.io.after_commit import after_commit
from storage_lib.io.environment import Clock
from storage_lib.io.file_io import FileIO
from storage_lib.io.table_directory.overwritten_file import read_overwritten

LATEST = "LATEST"
EARLIEST = "EARLIEST"
_STEPS_BEFORE_LISTING = 10
_FIRST_WITH_HINTS = 1
_DIGITS_MAX = 19


class NumberedFiles:
    """One sequence of files. Files are never changed; numbers only grow; old files may be deleted. Thread-safe."""

    def __init__(
        self, file_io: FileIO, directory: str, prefix: str, *, hints: bool, clock: Clock | None = None
    ) -> None:
        """Retry reading a hint that another engine is overwriting, if ``clock`` is given."""
        self._file_io = file_io
        self._clock = clock
        self._unreadable: set[str] = set()
        self._directory = directory
        self._prefix = prefix
        self._hints = hints
        self._seen: int | None = None

    def path(self, number: int) -> str:
        """Path of file ``number``, which need not exist."""
        return f"{self._directory}/{self._prefix}{number}"

    def latest_id(self) -> int | None:
        """Return the highest number; None if there is no file. Sees every file created before the call."""
        found = self._walk_up(self._seen)
        if found is None and self._hints:
            found = self._walk_up(self._hint(LATEST))
        if found is None:
            found = max(self.ids(), default=None)
            if self._hints:
                self._refuse_loss(found)
        self._seen = found
        return found

    def forget(self) -> None:
        """Let the next search for the highest number begin at LATEST instead of the number that was seen last."""
        self._seen = None

    def _refuse_loss(self, newest: int | None) -> None:
        """Raise ``CorruptFileError`` if LATEST names a file newer than all existing ones.

        LATEST is written after the file that it names, and an engine that deletes the newest files (a rollback)
        rewrites it first. So the named file was lost, and the next one must not reuse its number.
        """
        hint = self._hint(LATEST)
        if hint is None or hint <= (newest or 0) or self._file_io.exists(self.path(hint)):
            return
        if self._hint(LATEST) != hint or max(self.ids(), default=0) >= hint:
            return  # a concurrent writer changed it
        there = "there is none at all" if newest is None else f"the newest there is {self.path(newest)}"
        message = (
            f"{self.path(hint)} is missing, although {self._directory}/{LATEST} names it; {there}. Restore the file, "
            f"or delete {LATEST} to continue with the existing files and lose the later ones"
        )
        raise CorruptFileError(message)

    def earliest_id(self) -> int | None:
        """Return the lowest number in use, according to EARLIEST if valid; None if there is no file."""
        hint = self._hint(EARLIEST) if self._hints else None
        if hint is not None and self._file_io.exists(self.path(hint)):
            return hint
        return min(self.ids(), default=None)

    def ids(self) -> list[int]:
        """Return the numbers of all existing files, ascending."""
        numbers = (self.number_of(entry.name) for entry in self._file_io.list_directory(self._directory))
        return sorted(number for number in numbers if number is not None)

    def number_of(self, name: str) -> int | None:
        """Return the number in a file's name; None if it is not one of these files."""
        digits = name.removeprefix(self._prefix) if name.startswith(self._prefix) else ""
        # Accept only names that path() returns, so that no two files have the same number.
        is_number = digits.isascii() and digits.isdigit() and (digits == "0" or digits[0] != "0")
        return int(digits) if is_number else None

    def load(self, number: int) -> bytes:
        """Return the content of one file. Raises ``NotFoundError`` if it does not exist."""
        return self._file_io.read_bytes(self.path(number))

    def create(self, number: int, data: bytes) -> bool:
        """Create file ``number``, which is the commit, or return False if it exists, or existed and was deleted.

        Raises ``CommitOutcomeUnknownError`` if the store's answer was lost, or if file ``number`` is out of use by now
        and it is not known whether this call created it before.
        """
        if not self._file_io.create_if_absent(self.path(number), data):
            return False
        if self._hints and self._takes_a_place(number, data):
            return False
        self._seen = number
        if self._hints:
            # The file is the commit; hints are optional, so failing to write one is not an error.
            with after_commit(f"writing the hints of {self._directory}"):
                self._file_io.replace(f"{self._directory}/{LATEST}", str(number).encode())
                if number == _FIRST_WITH_HINTS:
                    self.write_earliest(number)
        return True

    def _takes_a_place(self, number: int, data: bytes) -> bool:
        """Return whether the file that was just created took the place of a deleted one; it is deleted then.

        Whatever goes wrong here, the file may be the commit, so that its creator must not clean up after itself.
        """
        try:
            if not self._is_out_of_use(number):
                return False
            self._give_up(number, data)
        except CommitOutcomeUnknownError:
            raise
        except Exception as error:
            message = f"{self.path(number)} was created, but it could not be looked up whether it is in use: {error}"
            raise CommitOutcomeUnknownError(message) from error
        return True

    def _is_out_of_use(self, number: int) -> bool:
        """Return whether all files up to ``number`` have been declared out of use.

        So it is if this process was suspended before it created the file, and others created it and deleted it.
        """
        earliest = self._hint(EARLIEST)
        while earliest is not None and number < earliest:
            if self._file_io.exists(self.path(earliest)):
                return True
            invalid, earliest = earliest, self._hint(EARLIEST)
            if earliest == invalid:
                return False
        return False

    def _give_up(self, number: int, data: bytes) -> None:
        """Delete the file, which takes the place of one that is gone; raise if it may have been in use before.

        Files are deleted in their order. So if this one is there and the next one is not, it was created afterwards;
        unless it is that of another process, which was suspended as well.
        """
        if self._file_io.exists(self.path(number + 1)) or not self._holds(number, data):
            message = (
                f"{self.path(number)} was created, and is out of use: this process was suspended for so long that it "
                "is not known which happened first"
            )
            raise CommitOutcomeUnknownError(message)
        self._file_io.delete(self.path(number), below=self._directory)

    def _holds(self, number: int, data: bytes) -> bool:
        try:
            return self.load(number) == data
        except NotFoundError:
            return False

    def write_earliest(self, number: int) -> None:
        """Declare all files below ``number`` out of use. Call this before deleting them."""
        self._file_io.replace(f"{self._directory}/{EARLIEST}", str(number).encode())

    def _walk_up(self, start: int | None) -> int | None:
        """Return the end of the gapless run from ``start``; None if ``start`` is missing or the run is long."""
        if start is None or not self._file_io.exists(self.path(start)):
            return None
        for number in range(start, start + _STEPS_BEFORE_LISTING):
            if not self._file_io.exists(self.path(number + 1)):
                return number
        return None

    def _hint(self, name: str) -> int | None:
        try:
            clock = None if name in self._unreadable else self._clock
            return read_overwritten(clock, partial(self._decoded_hint, name))
        except NotFoundError:
            return None
        except CorruptFileError:
            self._unreadable.add(name)  # it is damaged rather than being written; do not wait for it again
            return None

    def _decoded_hint(self, name: str) -> int:
        path = f"{self._directory}/{name}"
        text = self._file_io.read_bytes(path).decode("ascii", "replace").strip()
        if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
            message = f"{path} is not a number"
            raise CorruptFileError(message)
        return int(text)
