"""Codecs of Kafka's record batches. Reads all five; writes none, lz4 and zstd."""

from __future__ import annotations

import struct
import zlib
from enum import Enum

import lz4.frame
import pyarrow as pa
import zstandard

from storage_lib.errors import CorruptFileError, InvalidInputError

_GZIP_WINDOW_BITS = 31
_ZSTD_LEVEL = 1
_XERIAL_MAGIC = b"\x82SNAPPY\0"
_XERIAL_HEADER_BYTES = 16
_BLOCK_LENGTH = struct.Struct(">i")


class Compression(Enum):
    """Compression codec; the value is its number in a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def for_writing(cls, name: str) -> Compression:
        """Return the codec for the option ``log.kafka.compression.type``."""
        writable = {"none": cls.NONE, "lz4": cls.LZ4, "zstd": cls.ZSTD}
        if name not in writable:
            message = f"log.kafka.compression.type={name!r} can't be written; choose one of {', '.join(writable)}"
            raise InvalidInputError(message)
        return writable[name]


def compress(compression: Compression, records: memoryview) -> bytes | memoryview:
    """Compress a records section."""
    if compression is Compression.LZ4:
        # Kafka refuses frames whose blocks refer to earlier blocks (UNKNOWN_SERVER_ERROR).
        return bytes(lz4.frame.compress(records, block_linked=False))
    if compression is Compression.ZSTD:
        return zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compress(records)
    return records


def decompress(compression: Compression, packed: memoryview) -> bytes:
    """Decompress a records section. Raises ``CorruptFileError`` if it is corrupt although its checksum matches."""
    try:
        if compression is Compression.LZ4:
            return bytes(lz4.frame.decompress(packed))
        if compression is Compression.ZSTD:
            return b"".join(zstandard.ZstdDecompressor().read_to_iter(packed, read_size=max(1, len(packed))))
        if compression is Compression.GZIP:
            return zlib.decompress(packed, _GZIP_WINDOW_BITS)
        if compression is Compression.SNAPPY:
            return _unsnappy(bytes(packed))
    except (
        RuntimeError,
        OSError,
        EOFError,
        zlib.error,
        zstandard.ZstdError,
        struct.error,
    ) as error:
        message = f"a record batch can't be decompressed with {compression.name.lower()}: {error}"
        raise CorruptFileError(message) from error
    return bytes(packed)


def _unsnappy(packed: bytes) -> bytes:
    """Decompress Java's snappy stream (blocks after a 16-byte header), or one bare block as librdkafka writes it."""
    if not packed.startswith(_XERIAL_MAGIC):
        return _unsnappy_block(packed)
    blocks: list[bytes] = []
    position = _XERIAL_HEADER_BYTES
    while position < len(packed):
        (length,) = _BLOCK_LENGTH.unpack_from(packed, position)
        position += _BLOCK_LENGTH.size
        blocks.append(_unsnappy_block(packed[position : position + length]))
        position += length
    return b"".join(blocks)


def _unsnappy_block(block: bytes) -> bytes:
    length, shift = 0, 0
    for byte in block:
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte <= 0x7F:
            break
    return bytes(pa.Codec("snappy").decompress(block, decompressed_size=length))
