"""Sequential write to an object store in bounded memory: one request for small files, parts for larger ones."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Protocol

PART_BYTES = 8 * 1024 * 1024
"""Maximum size of a file written in one request, and of a part. S3's limit of 10,000 parts allows 80 GiB."""


class PartWriter(Protocol):
    """Multipart upload of a large file; nothing is visible before ``close`` returns."""

    def write(self, buffer: bytes | memoryview, /) -> int:
        """Pass bytes on; may wait for earlier parts."""

    def close(self) -> None:
        """Complete the file from its parts."""


class ObjectOutput(io.RawIOBase):
    """Raw file for ``pa.PythonFile``. The complete file is visible once ``close`` has returned without an error."""

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
        """Return True."""
        return True

    def write(self, data: bytes | memoryview, /) -> int:  # type: ignore[override]  # any buffer
        """Buffer the bytes; pass them on as parts once they are too many for one request."""
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
        """Complete the file; after an error there is either no file or a complete one."""
        if self.closed:
            return
        super().close()
        if self._parts is None:
            self._put_whole(bytes(self._head))
        else:
            self._parts.close()
