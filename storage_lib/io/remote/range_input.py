"""Random reads of a remote file with read-ahead.

Opening a file fetches its end along with its size, since formats store their footer there. Consecutive reads count as
a scan, for which each request fetches twice as much as the one before, up to a limit; a seek resets the size.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa

ReadRange: TypeAlias = Callable[[int, int], "bytes | memoryview"]
"""Function of ``(offset, length)`` that returns that many bytes; the range is within the file."""

TAIL_BYTES = 512 * 1024
"""Number of bytes fetched from the end when a file is opened; covers many small files completely."""
_JUMP_BYTES = 128 * 1024
_SCAN_BYTES_MAX = 8 * 1024 * 1024
_GAP_BYTES_MAX = 1024 * 1024


def open_ranges(read_range: ReadRange, *, size: int, tail: bytes | memoryview) -> pa.NativeFile:
    """Open a file of ``size`` bytes that ends with ``tail``, which may be the whole file."""
    if len(tail) >= size:
        return pa.BufferReader(tail)
    return pa.PythonFile(RangeInput(read_range, size=size, tail=tail), mode="r")


class RangeInput(io.RawIOBase):
    """Raw file for ``pa.PythonFile``, whose lock makes it thread-safe. Buffers the tail and one window."""

    def __init__(self, read_range: ReadRange, *, size: int, tail: bytes | memoryview) -> None:
        super().__init__()
        self._read_range = read_range
        self._size = size
        self._tail = memoryview(tail)
        self._tail_start = size - len(tail)
        self._window = memoryview(b"")
        self._window_start = 0
        self._position = 0
        self._scanned_to = 0
        self._ahead = _JUMP_BYTES

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position of the next read."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Set the position of the next read, without I/O."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        """Read ``size`` bytes, fewer only at the end of the file. Errors of the store pass through."""
        rest = max(0, self._size - self._position)
        length = rest if size is None or size < 0 else min(size, rest)
        start = self._position
        self._position += length
        if not length:
            return b""
        # Arrow accepts any buffer in place of bytes, without a copy.
        return self._slice(start, length)  # type: ignore[return-value]

    def readall(self) -> bytes:
        """Read the rest of the file."""
        return self.read(-1)

    def close(self) -> None:
        """Release the buffers."""
        self._tail = self._window = memoryview(b"")
        super().close()

    def _slice(self, start: int, length: int) -> memoryview:
        end = start + length
        if start >= self._tail_start:
            return self._tail[start - self._tail_start : end - self._tail_start]
        in_window = self._window_start <= start and end <= self._window_start + len(self._window)
        if not in_window:
            self._fetch(start, length)
        self._scanned_to = end
        return self._window[start - self._window_start : end - self._window_start]

    def _fetch(self, start: int, length: int) -> None:
        continues = self._scanned_to <= start <= self._scanned_to + _GAP_BYTES_MAX
        self._ahead = min(_SCAN_BYTES_MAX, 2 * max(self._ahead, length)) if continues else _JUMP_BYTES
        wanted = min(max(length, self._ahead), self._size - start)
        self._window = memoryview(b"")  # frees the old window before the new one is fetched
        self._window = memoryview(self._read_range(start, wanted))
        self._window_start = start
