"""Sequential write to a local file, with errors that name the file."""

from __future__ import annotations

import io
import os
from collections.abc import Callable

Translate = Callable[[str, str, OSError], Exception]


class LocalOutput(io.RawIOBase):
    """Raw file for ``pa.PythonFile``. Errors of the disk, including those of ``close``, go through ``translate``."""

    def __init__(self, path: str, descriptor: int, translate: Translate) -> None:
        """``descriptor`` is that of the new file, and is closed with it."""
        super().__init__()
        self._path = path
        self._translate = translate
        self._descriptor = descriptor

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: bytes | memoryview, /) -> int:  # type: ignore[override]  # any buffer
        """Write all bytes."""
        rest = memoryview(data).cast("B")  # Arrow's bytes are signed
        length = len(rest)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            raise self._translate("write", self._path, error) from error
        return length

    def close(self) -> None:
        """Close the file; network disks report failed writes here."""
        if self.closed:
            return
        super().close()
        try:
            os.close(self._descriptor)
        except OSError as error:
            raise self._translate("close", self._path, error) from error
