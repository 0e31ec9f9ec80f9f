"""Storage that fails on request: the k-th I/O fails, crashes, tears a write or drops the response.

counted = FaultyFileIO(files)                      first run: count the I/Os
act(counted); k_max = len(counted.calls)
for k in range(1, k_max + 1):
    with pytest.raises(SimulatedCrash):
        act(FaultyFileIO(fresh_files, Fault(FaultKind.CRASH_BEFORE, at=k)))
    check(reopened with the plain files)
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeVar

import pyarrow as pa

from storage_lib.errors import CommitOutcomeUnknownError, StorageError, UnavailableError
from storage_lib.io.file_io import FileIO, FileStatus

_Answer = TypeVar("_Answer")

WRITES = frozenset(
    {
        "create_if_absent",
        "write_bytes",
        "replace",
        "delete",
        "delete_tree",
        "rename_directory",
        "make_directory",
        "open_output",
        "sync",
    }
)
"""Operations that may change the storage."""


DELAYED_BY = 3


class SimulatedCrash(BaseException):
    """Simulated crash of the process. Not an ``Exception``, so that no error handling catches it."""


class FaultKind(Enum):
    """Failure of a chosen I/O."""

    FAIL = auto()
    """The operation has no effect and raises ``UnavailableError``."""
    LOSE_ANSWER = auto()
    """The operation succeeds, but its response is lost: a create raises ``CommitOutcomeUnknownError``, others
    ``UnavailableError``.
    """
    ANSWER_503 = auto()
    """The operation succeeds, but the store reports that it was busy: ``UnavailableError``, also for a create."""
    DELAY = auto()
    """The response is lost as above; the operation takes effect later, after ``DELAYED_BY`` more I/Os."""
    CRASH_BEFORE = auto()
    """The process crashes before the operation."""
    CRASH_AFTER = auto()
    """The process crashes after the operation."""
    TEAR = auto()
    """The process crashes in the middle of a ``write_bytes``, or before any other operation."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Fault ``kind`` at the ``at``-th I/O (from 1) among those of ``operation`` whose path contains ``path``."""

    kind: FaultKind
    at: int = 1
    operation: str | frozenset[str] | None = None
    path: str = ""

    def concerns(self, operation: str, path: str) -> bool:
        """Return whether this I/O counts towards ``at``."""
        wanted = self.operation
        fits = wanted is None or operation == wanted or (not isinstance(wanted, str) and operation in wanted)
        return fits and self.path in path


class FaultyFileIO:
    """Delegates I/O to ``delegate`` until a fault occurs. After a crash every I/O raises ``SimulatedCrash`` again.

    ``calls`` lists (operation, path) of every attempted I/O. Thread-safe.
    """

    def __init__(self, delegate: FileIO, *faults: Fault) -> None:
        self._delegate = delegate
        self.faults = faults
        self._seen: Counter[int] = Counter()
        self._lock = threading.Lock()
        self._late: list[tuple[int, Callable[[], object]]] = []
        self.calls: list[tuple[str, str]] = []
        self.is_dead = False

    @property
    def has_create_if_absent(self) -> bool:
        return self._delegate.has_create_if_absent

    def read_bytes(self, path: str) -> bytes:
        return self._do("read_bytes", path, lambda: self._delegate.read_bytes(path))

    def exists(self, path: str) -> bool:
        return self._do("exists", path, lambda: self._delegate.exists(path))

    def create_if_absent(self, path: str, data: bytes) -> bool:
        return self._do("create_if_absent", path, lambda: self._delegate.create_if_absent(path, data))

    def write_bytes(self, path: str, data: bytes) -> None:
        half = data[: len(data) // 2]
        self._do(
            "write_bytes",
            path,
            lambda: self._delegate.write_bytes(path, data),
            torn=lambda: self._delegate.write_bytes(path, half),
        )

    def replace(self, path: str, data: bytes) -> None:
        self._do("replace", path, lambda: self._delegate.replace(path, data))

    def list_directory(self, path: str) -> list[FileStatus]:
        return self._do("list_directory", path, lambda: self._delegate.list_directory(path))

    def delete(self, path: str, *, below: str | None = None) -> None:
        self._do("delete", path, lambda: self._delegate.delete(path, below=below))

    def delete_tree(self, path: str, *, below: str | None = None) -> None:
        self._do("delete_tree", path, lambda: self._delegate.delete_tree(path, below=below))

    def rename_directory(self, path: str, new_path: str) -> bool:
        return self._do("rename_directory", path, lambda: self._delegate.rename_directory(path, new_path))

    def make_directory(self, path: str) -> None:
        self._do("make_directory", path, lambda: self._delegate.make_directory(path))

    def open_input(self, path: str) -> pa.NativeFile:
        return self._do("open_input", path, lambda: self._delegate.open_input(path))

    def open_output(self, path: str) -> pa.NativeFile:
        return self._do("open_output", path, lambda: self._delegate.open_output(path))

    def sync(self, paths: list[str]) -> None:
        self._do("sync", ",".join(paths), lambda: self._delegate.sync(paths))

    def _do(
        self, operation: str, path: str, act: Callable[[], _Answer], *, torn: Callable[[], None] | None = None
    ) -> _Answer:
        kind = self._struck(operation, path)
        where = f"{operation} of {path}"
        self._do_what_is_late()
        if kind is FaultKind.FAIL:
            message = f"simulated outage at {where}"
            raise UnavailableError(message)
        if kind is FaultKind.DELAY:
            self._late.append((len(self.calls) + DELAYED_BY, act))
            raise _lost_answer(operation, where)
        if kind is FaultKind.TEAR and torn is not None:
            torn()
        if kind in (FaultKind.CRASH_BEFORE, FaultKind.TEAR):
            raise SimulatedCrash(where)
        answer = act()
        if kind is FaultKind.CRASH_AFTER:
            raise SimulatedCrash(where)
        if kind is FaultKind.LOSE_ANSWER:
            raise _lost_answer(operation, where)
        if kind is FaultKind.ANSWER_503:
            message = f"simulated 503 of a store that did {where} all the same"
            raise UnavailableError(message)
        return answer

    def arrive(self) -> None:
        """Carry out all delayed operations now."""
        late, self._late = self._late, []
        for _, act in late:
            # The response is lost.
            with suppress(StorageError):
                act()

    def _do_what_is_late(self) -> None:
        with self._lock:
            due = [act for at, act in self._late if at < len(self.calls)]
            self._late = [(at, act) for at, act in self._late if at >= len(self.calls)]
        for act in due:
            with suppress(StorageError):
                act()

    def _struck(self, operation: str, path: str) -> FaultKind | None:
        with self._lock:
            self.calls.append((operation, path))
            if self.is_dead:
                raise SimulatedCrash(f"{operation} of {path} after death")
            struck = None
            for index, fault in enumerate(self.faults):
                if fault.concerns(operation, path):
                    self._seen[index] += 1
                    if self._seen[index] == fault.at and struck is None:
                        struck = fault.kind
            self.is_dead = struck in (FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER, FaultKind.TEAR)
            return struck


def _lost_answer(operation: str, where: str) -> StorageError:
    error = CommitOutcomeUnknownError if operation == "create_if_absent" else UnavailableError
    return error(f"simulated loss of the answer to {where}")
