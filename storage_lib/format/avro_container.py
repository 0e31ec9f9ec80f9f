"""Avro object container files in memory, the format of manifests and manifest lists (docs/format.md, 1.5).

Records are decoded with the schema in the file's own header, so fields of other releases are preserved or missing.
fastavro decodes the records; the container is decoded here because fastavro's zstandard codec requires an extra
package, and because logical types have to stay plain numbers.
"""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Protocol, TypeAlias, cast

import fastavro
import zstandard
from fastavro.read import SchemaResolutionError
from fastavro.schema import SchemaParseException, UnknownType

from storage_lib.errors import CorruptFileError, InvalidInputError

Record: TypeAlias = Mapping[str, Any]


class BinaryOutput(Protocol):
    """Output of blocks."""

    def write(self, data: bytes, /) -> object:
        """Write all of ``data``."""


class BinaryInput(Protocol):
    """Input of blocks."""

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes, none at the end."""

    def seek(self, position: int, /) -> object:
        """Continue reading at ``position``."""

    def tell(self) -> int:
        """Return the position of the next read."""


_MAGIC = b"Obj\x01"
_OTHER_FORMATS = {b"PAR1": "parquet", b"ORC": "orc"}
_SYNC_LENGTH = 16
_META_SCHEMA = fastavro.parse_schema({"type": "map", "values": "bytes"})
_SYNC_KIND, _DIGEST = "dynamic-table.sync", b"blake2b"
"""Header of files whose sync marker is a digest of their content; other readers ignore it."""
_LONG_BYTES_MAX = 10
_EXPANDED_BYTES_MIN = 256 << 20
_EXPANDED_RATIO_MAX = 200
"""Metadata that expands by more than this ratio, and to more than the size above, is treated as corrupt."""
UNREADABLE = (
    EOFError,
    IndexError,
    KeyError,
    ValueError,
    TypeError,
    AttributeError,
    RecursionError,
    OverflowError,
    MemoryError,
    AssertionError,
    SystemError,  # from CPython, for a negative number of bytes
    zlib.error,
    zstandard.ZstdError,
    SchemaParseException,
    UnknownType,
    SchemaResolutionError,
)
"""Exceptions that decoders raise for invalid Avro."""
_BLOCK_BYTES_MAX = 1 << 20
_RECORDS_PER_BLOCK = 4096


def encode_container(schema_json: str, records: Sequence[Record]) -> bytes:
    """Write ``records`` as one zstandard container file; the same records always give the same bytes."""
    out = io.BytesIO()
    # The sync marker only has to be unlikely in the data; derived from the content, it keeps files reproducible.
    body = list(_encode_blocks(schema_json, records))
    digest = blake2b(schema_json.encode(), digest_size=_SYNC_LENGTH)
    for _, block in body:
        digest.update(block)
    sync = digest.digest()
    out.write(_MAGIC)
    header = {"avro.codec": b"zstandard", "avro.schema": schema_json.encode(), _SYNC_KIND: _DIGEST}
    fastavro.schemaless_writer(out, _META_SCHEMA, header)
    out.write(sync)
    for count, block in body:
        _write_long(out, count)
        _write_long(out, len(block))
        out.write(block)
        out.write(sync)
    return out.getvalue()


def decode_container(data: bytes, source: str) -> list[dict[str, Any]]:
    """Decode every record of a container file; logical types stay plain numbers.

    Raises ``CorruptFileError`` naming ``source`` if the bytes are not a container, or use an unknown codec.
    """
    try:
        return _decode(data, source)
    except CorruptFileError:
        raise
    except InvalidInputError:
        raise
    except UNREADABLE as error:
        message = f"{source} is not a readable Avro file ({error!r}): it was cut short or changed after it was written"
        raise CorruptFileError(message) from error


def container_schema(data: bytes, source: str) -> str:
    """Return the schema in the header of a container file, as JSON; raises as ``decode_container``."""
    _check_magic(data, source)
    stream = io.BytesIO(data)
    stream.seek(len(_MAGIC))
    try:
        return cast("dict[str, bytes]", fastavro.schemaless_reader(stream, _META_SCHEMA, None))["avro.schema"].decode()
    except UNREADABLE as error:
        message = f"{source} has no readable Avro header ({error!r}): it was cut short or changed after it was written"
        raise CorruptFileError(message) from error


def _decode(data: bytes, source: str) -> list[dict[str, Any]]:
    _check_magic(data, source)
    stream = io.BytesIO(data)
    stream.seek(len(_MAGIC))
    header = cast("dict[str, bytes]", fastavro.schemaless_reader(stream, _META_SCHEMA, None))
    array_schema = _array_schema(header["avro.schema"].decode())
    codec = header.get("avro.codec", b"null").decode()
    sync = stream.read(_SYNC_LENGTH)
    digest = blake2b(header["avro.schema"], digest_size=_SYNC_LENGTH)
    records: list[dict[str, Any]] = []
    left = max(_EXPANDED_BYTES_MIN, _EXPANDED_RATIO_MAX * len(data))
    while stream.tell() < len(data):
        prefix_start = stream.tell()
        count = _read_long(stream)
        count_bytes = data[prefix_start : stream.tell()]
        size = _read_long(stream)
        block = stream.read(max(0, size))
        if len(block) != size or stream.read(_SYNC_LENGTH) != sync:
            message = f"{source} ends inside a block, or holds bytes that belong to another file"
            raise CorruptFileError(message)
        digest.update(block)
        content = _decompress(block, codec, source, left)
        left -= len(content)
        _check_count(count, content, source)
        # A block is the content of an Avro array: with count and end marker around it, one call decodes all records.
        array = io.BytesIO(count_bytes + content + b"\x00")
        decoded = cast("list[dict[str, Any]]", fastavro.schemaless_reader(array, array_schema, None))
        if len(decoded) != count or array.read(1):
            message = f"{source} announces {count} records in a block and holds {len(decoded)}"
            raise CorruptFileError(message)
        records.extend(decoded)
    if header.get(_SYNC_KIND) == _DIGEST and digest.digest() != sync:
        message = f"{source} was cut short or changed after it was written: its digest is another one"
        raise CorruptFileError(message)
    return records


def _check_magic(data: bytes, source: str) -> None:
    if data[: len(_MAGIC)] == _MAGIC:
        return
    for magic, name in _OTHER_FORMATS.items():
        if data.startswith(magic):
            message = (
                f"{source} is a file of format {name}, of a table with option manifest.format={name}; only Avro is "
                "read here. Copy the rows into a table without that option, by the engine that made it"
            )
            raise InvalidInputError(message)
    message = f"{source} is not an Avro container file: it starts with {data[:4]!r}"
    raise CorruptFileError(message)


def _encode_blocks(schema_json: str, records: Sequence[Record]) -> list[tuple[int, bytes]]:
    array_schema = _array_schema(schema_json)
    compressor = zstandard.ZstdCompressor(level=1, write_checksum=True)
    blocks = []
    step = _RECORDS_PER_BLOCK
    start = 0
    while start < len(records):
        chunk = records[start : start + step]
        raw = io.BytesIO()
        fastavro.schemaless_writer(raw, array_schema, chunk)
        content = raw.getvalue()
        if len(content) > _BLOCK_BYTES_MAX and len(chunk) > 1:
            step = max(1, len(chunk) * _BLOCK_BYTES_MAX // (2 * len(content)))
            continue
        prefix = io.BytesIO()
        _write_long(prefix, len(chunk))
        inner = content[len(prefix.getvalue()) : -1]
        blocks.append((len(chunk), compressor.compress(inner)))
        start += len(chunk)
    return blocks


def _decompress(block: bytes, codec: str, source: str, bytes_max: int) -> bytes:
    match codec:
        case "null":
            content = block
        case "deflate":
            content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(block, bytes_max + 1)
        case "zstandard":
            # Java streams its frames: the content size is not always in the frame's header.
            with zstandard.ZstdDecompressor(max_window_size=bytes_max).stream_reader(block) as reader:
                content = reader.read(bytes_max + 1)
        case _:
            message = f"{source} is compressed with {codec!r}; readable are null, deflate and zstandard"
            raise CorruptFileError(message)
    if len(content) > bytes_max:
        message = f"{source} expands to more than {bytes_max} bytes, which no file of its size does that is sound"
        raise CorruptFileError(message)
    return content


def _check_count(count: int, content: bytes, source: str) -> None:
    """Raise ``CorruptFileError`` for an impossible count: a record has at least a byte, so the loop would not end."""
    if not 0 < count <= len(content):
        message = f"{source} announces {count} records in a block of {len(content)} bytes"
        raise CorruptFileError(message)


@lru_cache(maxsize=64)
def _array_schema(schema_json: str) -> Any:
    items = _without_logical_types(json.loads(schema_json))
    return fastavro.parse_schema({"type": "array", "items": items})


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _without_logical_types(value) for key, value in schema.items() if key != "logicalType"}
    if isinstance(schema, list):
        return [_without_logical_types(value) for value in schema]
    return schema


def _write_long(out: io.BytesIO, value: int) -> None:
    zigzag = (value << 1) ^ (value >> 63)
    while zigzag & ~0x7F:
        out.write(bytes([(zigzag & 0x7F) | 0x80]))
        zigzag >>= 7
    out.write(bytes([zigzag]))


def _read_long(stream: BinaryInput) -> int:
    shift = value = 0
    for _ in range(_LONG_BYTES_MAX):
        (byte,) = stream.read(1)
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1)
        shift += 7
    message = "a number of more than 64 bits"
    raise ValueError(message)


class BlockWriter:
    """Writes a container file block by block to an output that the caller opens and closes."""

    def __init__(self, output: BinaryOutput, schema_json: str, codec: str) -> None:
        """Write the header; ``codec`` is one of null, deflate and zstandard."""
        self._output = output
        self._codec = codec
        # The sync marker only has to be unlikely in the data.
        self._sync = blake2b(schema_json.encode(), digest_size=_SYNC_LENGTH).digest()
        head = io.BytesIO()
        head.write(_MAGIC)
        header = {"avro.codec": codec.encode(), "avro.schema": schema_json.encode()}
        fastavro.schemaless_writer(head, _META_SCHEMA, header)
        output.write(head.getvalue() + self._sync)

    def write(self, count: int, content: bytes) -> None:
        """Write one block of ``count`` records, already encoded."""
        block = _compress(content, self._codec)
        head = io.BytesIO()
        _write_long(head, count)
        _write_long(head, len(block))
        self._output.write(head.getvalue() + block + self._sync)


class BlockReader:
    """Reads a container file block by block; ``source`` must be seekable, and is closed by the caller."""

    def __init__(self, source: BinaryInput, name: str) -> None:
        """Read the header; raises ``CorruptFileError`` naming the file, or an error of fastavro."""
        self._source = source
        self._name = name
        magic = source.read(len(_MAGIC))
        if magic != _MAGIC:
            message = f"{name} is not an Avro container file: it starts with {magic!r}"
            raise CorruptFileError(message)
        header = cast("dict[str, bytes]", fastavro.schemaless_reader(cast("Any", source), _META_SCHEMA, None))
        self.schema: dict[str, Any] = json.loads(header["avro.schema"])
        self._codec = header.get("avro.codec", b"null").decode()
        self._sync = source.read(_SYNC_LENGTH)
        self._start = source.tell()

    def counts(self) -> Iterator[int]:
        """Yield the number of records of each block, without decoding them."""
        self._source.seek(self._start)
        while (count := self._next_count()) is not None:
            size = _read_long(self._source)
            self._check_sizes(count, size)
            self._source.seek(self._source.tell() + size)
            self._check_sync()
            yield count

    def blocks(self, names: Sequence[str]) -> Iterator[list[dict[str, Any]]]:
        """Yield the records of each block with only those fields; logical types stay plain numbers."""
        writer = _array_schema(json.dumps(self.schema))
        wanted = {**self.schema, "fields": [each for each in self.schema["fields"] if each["name"] in names]}
        # Schema resolution is slow even if the schemas are equal.
        reader = None if wanted == self.schema else _array_schema(json.dumps(wanted))
        self._source.seek(self._start)
        while (count := self._next_count()) is not None:
            size = _read_long(self._source)
            self._check_sizes(count, size)
            block = self._source.read(size)
            self._check_sync()
            if len(block) != size:
                message = f"{self._name} ends inside a block"
                raise CorruptFileError(message)
            prefix = io.BytesIO()
            _write_long(prefix, count)
            bytes_max = max(_EXPANDED_BYTES_MIN, _EXPANDED_RATIO_MAX * size)
            content = _decompress(block, self._codec, self._name, bytes_max)
            _check_count(count, content, self._name)
            array = io.BytesIO(prefix.getvalue() + content + b"\x00")
            records = cast("list[dict[str, Any]]", fastavro.schemaless_reader(array, writer, reader))
            if len(records) != count or array.read(1):
                message = f"{self._name} announces {count} records in a block that holds {len(records)}"
                raise CorruptFileError(message)
            yield records

    def _next_count(self) -> int | None:
        first = self._source.read(1)
        if not first:
            return None
        self._source.seek(self._source.tell() - 1)
        return _read_long(self._source)

    def _check_sizes(self, count: int, size: int) -> None:
        if count <= 0 or size < 0:
            message = f"{self._name} has a block of {count} records in {size} bytes"
            raise CorruptFileError(message)

    def _check_sync(self) -> None:
        if self._source.read(_SYNC_LENGTH) != self._sync:
            message = f"{self._name} ends inside a block, or holds bytes that belong to another file"
            raise CorruptFileError(message)


def _compress(data: bytes, codec: str) -> bytes:
    match codec:
        case "zstandard":
            return zstandard.ZstdCompressor(level=1, write_checksum=True).compress(data)
        case "deflate":
            compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
            return compressor.compress(data) + compressor.flush()
        case _:
            return data
