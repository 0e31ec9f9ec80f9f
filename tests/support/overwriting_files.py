"""Storage on which another engine overwrites one file in place: unreadable until enough time has passed."""

from __future__ import annotations

from storage_lib.errors import NotFoundError
from storage_lib.io.local.memory_file_io import MemoryFileIO
from tests.support.fake_environment import FakeClock


class OverwritingFiles(MemoryFileIO):
    """Reads of ``path`` return ``while_overwritten`` (None: the file is missing) until ``clock`` shows ``until``."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(now_millis=clock.now_millis)
        self._clock = clock
        self.path = ""
        self.while_overwritten: bytes | None = b""
        self.until = 0.0

    def overwrite(self, path: str, *, seconds: float, meanwhile: bytes | None = b"") -> None:
        """Begin to overwrite ``path``; it takes ``seconds``, and the content is the same afterwards."""
        self.path, self.while_overwritten, self.until = path, meanwhile, self._clock.monotonic() + seconds

    def read_bytes(self, path: str) -> bytes:
        if path != self.path or self._clock.monotonic() >= self.until:
            return super().read_bytes(path)
        if self.while_overwritten is None:
            message = f"can't read {path}: there is no such file"
            raise NotFoundError(message)
        return self.while_overwritten
