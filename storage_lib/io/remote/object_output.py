"""One sequential write to an object store in bounded memory: small files by one request, larger ones in parts."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Protocol

PART_BYTES = 8 * 1024 * 1024
"""Up to here a file is one request. S3 takes 10,000 parts, so that a file may have 80 GiB."""


class PartWriter(Protocol):
    """Multipart upload of a large file; nothing is visible before ``close`` returns."""

    def write(self, buffer: bytes | memoryview, /) -> int:
        """Hand on bytes; may wait for earlier parts."""

    def close(self) -> None:
        """Make the file of the parts."""


class ObjectOutput(io.RawIOBase):
    """For ``pa.PythonFile``. The file is there, whole, once ``close`` returned without an error."""

    def __init__(
        self, *, put_whole: Callable[[bytes], None], open_parts: Callable[[], PartWriter], part_bytes: int = PART_BYTES
    ) -> None:
        super().__init__()
        self._put_whole = put_whole
        self._open_parts = open_parts
        self._part_bytes = part_bytes
        self._head = bytearray()
        self._parts: PartWriter | None = None

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, data: bytes | memoryview, /) -> int:  # type: ignore[override]  # any buffer
        """Take the bytes; once they are too many for one request, pass them on."""
        taken = memoryview(data).cast("B")  # Arrow's bytes are signed
        if self._parts is not None:
            self._parts.write(taken)
            return len(taken)
        self._head += taken
        if len(self._head) > self._part_bytes:
            self._parts = self._open_parts()
            self._parts.write(bytes(self._head))
            self._head = bytearray()
        return len(taken)

    def close(self) -> None:
        """Finish the file; an error leaves none, or one that is whole."""
        if self.closed:
            return
        super().close()
        if self._parts is None:
            self._put_whole(bytes(self._head))
        else:
            self._parts.close()
