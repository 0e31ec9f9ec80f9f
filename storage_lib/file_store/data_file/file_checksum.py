"""CRC-32C of a data file, stored in its manifest entry where other engines skip it.

``_EMBEDDED_FILE_INDEX`` of an entry is a container of indexes by column (Paimon's ``FileIndexFormat``), of which a
reader only opens those of columns in its filter. The checksum is stored as an index of a column that no table
has (``schema`` refuses its name). It is preserved when another engine rewrites the manifest; a compacted file starts
without one or with its own.

    magic (8) | version (4) | length of the head (4) | columns (4) | name | indexes (4) | name | start (4) | length (4)
    | length of additions of later versions (4)  ||  CRC-32C (4)     all big-endian; a name has 2 bytes of length
"""

from __future__ import annotations

import io
import struct

import crc32c
import pyarrow as pa

from storage_lib.errors import CorruptFileError

COLUMN = "_FILE_CHECKSUM"
_KIND = "crc32c"
_MAGIC = 1493475289347502
_VERSION = 1
_HEAD = struct.Struct(">qiii")
_CHUNK_BYTES = 8 << 20
_HELD_BYTES_MAX = 32 << 20
"""Remote files up to this size are fetched whole, checked and read from memory; larger ones would be read twice."""


def encode_checksum(checksum: int) -> bytes:
    """Return a container with only the checksum."""
    names = [name.encode() for name in (COLUMN, _KIND)]
    column, kind = (struct.pack(">H", len(name)) + name for name in names)
    length = _HEAD.size + len(column) + 4 + len(kind) + 8 + 4
    head = _HEAD.pack(_MAGIC, _VERSION, length, 1) + column + struct.pack(">i", 1)
    return head + kind + struct.pack(">iii", length, 4, 0) + struct.pack(">I", checksum)


_TEMPLATE = encode_checksum(0)[:-4]


def checksum_in(embedded_index: bytes | None) -> int | None:
    """Return the checksum in an entry; None for files of other writers."""
    if embedded_index is None or embedded_index[:-4] != _TEMPLATE:
        return None
    return int.from_bytes(embedded_index[-4:], "big")


class ChecksumOutput(io.RawIOBase):
    """Passes data on to the output, and computes its checksum."""

    def __init__(self, output: pa.NativeFile) -> None:
        super().__init__()
        self._output = output
        self.checksum = 0

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: bytes | memoryview, /) -> int:  # type: ignore[override]  # any buffer
        """Write all of ``data``."""
        view = memoryview(data).cast("B")  # Arrow's bytes are signed
        self._output.write(view)
        self.checksum = crc32c.crc32c(view, self.checksum)
        return len(view)

    def flush(self) -> None:
        """Flush the output."""
        if not self.closed:
            self._output.flush()

    def close(self) -> None:
        """Close the output as well."""
        if not self.closed:
            super().close()
            self._output.close()


def checked(source: pa.NativeFile, expected: int, path: str) -> pa.NativeFile:
    """Return the file to read from, after checking its bytes. Raises ``CorruptFileError`` naming ``path``.

    A large remote file is returned unchecked.
    """
    if not isinstance(source, pa.MemoryMappedFile | pa.BufferReader):
        if source.size() > _HELD_BYTES_MAX:
            return source
        source = pa.BufferReader(source.read_buffer())
    check_bytes(source, expected, path)
    source.seek(0)
    return source


def check_bytes(source: pa.NativeFile, expected: int, path: str) -> None:
    """Read the whole file in chunks; raises ``CorruptFileError`` if it was changed after it was written."""
    found = 0
    while chunk := source.read_buffer(_CHUNK_BYTES):
        if not chunk.size:
            break
        found = crc32c.crc32c(chunk, found)
    if found != expected:
        message = (
            f"{path} was changed after it was written: its CRC-32C is {found:08x}, and {expected:08x} when it was "
            "written. Restore the file from a copy, or roll back to a snapshot or tag without it"
        )
        raise CorruptFileError(message)
