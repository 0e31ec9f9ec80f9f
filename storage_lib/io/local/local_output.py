"""One sequential write to a local file, whose errors name the file."""

from __future__ import annotations

import io
import os
from collections.abc import Callable

Translate = Callable[[str, str, OSError], Exception]


class LocalOutput(io.RawIOBase):
    """For ``pa.PythonFile``. An error of the disk is raised as ``translate`` has it, also when the file is closed."""

    def __init__(self, path: str, translate: Translate) -> None:
        super().__init__()
        self._path = path
        self._translate = translate
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, data: bytes | memoryview, /) -> int:  # type: ignore[override]  # any buffer
        """Write all of it."""
        rest = memoryview(data).cast("B")  # Arrow's bytes are signed
        length = len(rest)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            raise self._translate("write", self._path, error) from error
        return length

    def close(self) -> None:
        """Give the file back; network disks tell here what they could not store."""
        if self.closed:
            return
        super().close()
        try:
            os.close(self._descriptor)
        except OSError as error:
            raise self._translate("close", self._path, error) from error
