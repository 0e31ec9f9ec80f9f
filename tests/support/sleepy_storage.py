"""Storage whose process stalls before one of its operations, as a suspended process or a paused machine does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from tests.support.faulty_file_io import FaultyFileIO

if TYPE_CHECKING:
    from storage_lib.io.file_io import FileIO

_Answer = TypeVar("_Answer")


class SleepyStorage(FaultyFileIO):
    """Stalls its process before operation ``at`` (from 1, log operations count) and calls ``meanwhile``.

    With ``commits_at`` it stalls instead before that creation of a snapshot (from 1).
    """

    def __init__(self, delegate: FileIO, at: int, meanwhile: Callable[[], None]) -> None:
        super().__init__(delegate)
        self.at = at
        self.commits_at = 0
        self._meanwhile = meanwhile

    def _do(
        self, operation: str, path: str, act: Callable[[], _Answer], *, torn: Callable[[], None] | None = None
    ) -> _Answer:
        if operation == "create_if_absent" and "/snapshot/snapshot-" in path:
            self.commits_at -= 1
            if self.commits_at == 0:
                self._meanwhile()
        if len(self.calls) + 1 == self.at:
            self.at = 0
            self._meanwhile()
        return super()._do(operation, path, act, torn=torn)
