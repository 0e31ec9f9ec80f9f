"""Storage whose process stalls before one of its operations, as a suspended process or a paused machine does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from tests.support.faulty_file_io import FaultyFileIO

if TYPE_CHECKING:
    from storage_lib.io.file_io import FileIO

_Answer = TypeVar("_Answer")


class SleepyStorage(FaultyFileIO):
    """Stalls its process before operation ``at`` (from 1, log operations count) and calls ``meanwhile``."""

    def __init__(self, delegate: FileIO, at: int, meanwhile: Callable[[], None]) -> None:
        super().__init__(delegate)
        self.at = at
        self._meanwhile = meanwhile

    def _do(
        self, operation: str, path: str, act: Callable[[], _Answer], *, torn: Callable[[], None] | None = None
    ) -> _Answer:
        if len(self.calls) + 1 == self.at:
            self.at = 0
            self._meanwhile()
        return super()._do(operation, path, act, torn=torn)
