"""Numbered files ``<prefix>1, <prefix>2, ...`` of one directory: find the latest, load, create the next atomically.

With hints, LATEST and EARLIEST hold a number as text (docs/format.md, 1.4). LATEST is written after the file that it
names, so it may be too low but never too high. Both are optional, and every hint is verified.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from storage_lib.errors import CommitOutcomeUnknownError, CorruptFileError, NotFoundError, StorageError, note_outcome
from storage_lib.io.after_commit import after_commit
from storage_lib.io.environment import Clock
from storage_lib.io.file_io import FileIO
from storage_lib.io.table_directory.overwritten_file import read_overwritten

LATEST = "LATEST"
EARLIEST = "EARLIEST"
_STEPS_BEFORE_LISTING = 10
_FIRST_WITH_HINTS = 1
_DIGITS_MAX = 19
_SECONDS_BETWEEN_HINTS = 10
_SECONDS_OF_A_CREATION = 1


class DisplacedError(StorageError):
    """A created file does not follow the one before: others deleted that one, or put another in its place."""


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
        self._hint_read_at: float | None = None

    def path(self, number: int) -> str:
        """Path of file ``number``, which need not exist."""
        return f"{self._directory}/{self._prefix}{number}"

    def latest_id(self) -> int | None:
        """Return the highest number; None if there is no file. Sees every file created before the call.

        A file that a suspended process created in the place of a deleted one is not the newest, although the number was
        the newest that was seen: so now and then the search begins at LATEST.
        """
        found = None if self._is_due() else self._walk_up(self._seen)
        if found is None and self._hints:
            found = self._walk_up(self._hint(LATEST))
        if found is None:
            found = max(self.ids(), default=None)
            if self._hints:
                self._refuse_loss(found)
        self._seen = found
        return found

    def _now(self) -> float:
        return 0.0 if self._clock is None else self._clock.monotonic()

    def _is_due(self) -> bool:
        if self._clock is None or not self._hints:
            return False
        now = self._clock.monotonic()
        is_due = self._hint_read_at is not None and now - self._hint_read_at >= _SECONDS_BETWEEN_HINTS
        if is_due or self._hint_read_at is None:
            self._hint_read_at = now
        return is_due

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
        return self._start_of_newest_run()

    def _start_of_newest_run(self) -> int | None:
        """Return the lowest number that no gap separates from the highest: a file below a gap is out of use."""
        start = None
        for number in reversed(self.ids()):
            if start is not None and number != start - 1:
                break
            start = number
        return start

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

    def create(
        self,
        number: int,
        data: bytes,
        *,
        follows: Callable[[bytes], bool] | None = None,
        is_gone: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Create file ``number``, which is the commit, or return False if it exists, or existed and was deleted.

        ``follows`` tells whether the new file may follow the content of the one before; ``is_gone`` whether the
        directory was deleted, or recreated by others. Both matter if this process was suspended.

        Raises ``DisplacedError`` if the file does not follow the one before it: it was deleted again. Raises
        ``CommitOutcomeUnknownError`` if the store's answer was lost, or if file ``number`` is out of use by now
        and it is not known whether this call created it before.
        """
        started = self._now()
        if not self._file_io.create_if_absent(self.path(number), data):
            return False
        if self._hints:
            # The file is the commit; hints are optional, so failing to write one is not an error.
            with after_commit(f"writing the hints of {self._directory}"):
                self._write_hint(LATEST, number)
                if number == _FIRST_WITH_HINTS and self._hint(EARLIEST) is None:
                    self.write_earliest(number)
        # Nothing is written afterwards: wherever this process was suspended, this sees what others did meanwhile.
        is_slow = self._now() - started > _SECONDS_OF_A_CREATION
        if (self._hints or follows is not None) and not self._stays(number, data, follows, is_gone, is_slow=is_slow):
            return False
        self._seen = number
        return True

    def _stays(
        self,
        number: int,
        data: bytes,
        follows: Callable[[bytes], bool] | None,
        is_gone: Callable[[], bool],
        *,
        is_slow: bool,
    ) -> bool:
        """Return whether the file that was just created is the next one; otherwise delete it.

        Whatever goes wrong here, the file may be the commit, so that its creator must not clean up after itself.
        """
        try:
            previous = None if follows is None else self._content(number - 1)
            is_next = previous is not None and follows is not None and follows(previous)
            # Files are deleted in their order, so the next one was not there before. Another engine's rollback may have
            # deleted it since.
            if is_next and not (is_slow and not self._holds(number, data)):
                return True
            is_expired = previous is None and self._is_out_of_use(number)
            if previous is None and not is_expired and self._may_begin(number, follows, is_gone):
                return True
            self._give_up(number, data)
        except CommitOutcomeUnknownError:
            raise
        except Exception as error:
            message = f"{self.path(number)} was created, but it could not be looked up whether it is in use: {error}"
            raise CommitOutcomeUnknownError(message) from error
        self.forget()
        if is_expired:
            return False
        message = f"{self.path(number)} was created after others had deleted or replaced the file before it"
        raise DisplacedError(message)

    def _may_begin(self, number: int, follows: Callable[[bytes], bool] | None, is_gone: Callable[[], bool]) -> bool:
        """Return whether a file without one before it is in use: the first one, or the earliest that is kept."""
        if is_gone():
            return False
        if follows is None:
            return True
        if not self._hints:
            return False
        earliest, start = self.earliest_id(), self._start_of_newest_run()
        return earliest is not None and start is not None and start <= number <= earliest

    def _content(self, number: int) -> bytes | None:
        try:
            return self.load(number)
        except NotFoundError:
            return None

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
                start = self._start_of_newest_run()
                return start is not None and number < start
        return False

    def _give_up(self, number: int, data: bytes) -> None:
        """Delete the file, which takes the place of one that is gone; raise if it may have been in use before.

        Files are deleted in their order. So if this one is there and the next one is not, it was created afterwards;
        unless it is that of another process, which was suspended as well.
        """
        is_ours = self._holds(number, data)
        others = [each for each in self.ids() if each != number]
        if self._hints and others:
            self._write_hint(LATEST, max(others))
        elif self._hints:
            for name in (LATEST, EARLIEST):
                self._file_io.delete(f"{self._directory}/{name}", below=self._directory)
        if number + 1 in others or not is_ours:
            message = (
                f"{self.path(number)} was created, and is out of use: this process was suspended for so long that it "
                "is not known which happened first"
            )
            raise CommitOutcomeUnknownError(message)
        self._file_io.delete(self.path(number), below=self._directory)

    def _holds(self, number: int, data: bytes) -> bool:
        return self._content(number) == data

    def write_earliest(self, number: int) -> None:
        """Write EARLIEST, whatever it is."""
        self._write_hint(EARLIEST, number)

    def forget_earliest(self) -> None:
        """Delete EARLIEST: the lowest number is then found among the files."""
        self._file_io.delete(f"{self._directory}/{EARLIEST}", below=self._directory)

    def _write_hint(self, name: str, number: int) -> None:
        self._file_io.replace(f"{self._directory}/{name}", str(number).encode())

    def move_earliest(self, number: int) -> None:
        """Declare all files below ``number`` out of use, unless more are. Call this before deleting them.

        An error has the attribute ``committed`` if they were declared so nevertheless.
        """
        declared = self._hint(EARLIEST)
        if declared is not None and declared > number and self._file_io.exists(self.path(declared)):
            return
        self.write_earliest(number)
        try:
            if not self._file_io.exists(self.path(number)):
                # This process was suspended just before, and others have deleted this file as well.
                start = self._start_of_newest_run()
                if start is not None:
                    self.write_earliest(start)
        except StorageError as error:
            note_outcome(error, committed=True)
            raise

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
