"""Encoding and decoding of Kafka record batches, format version 2, by column instead of record by record.

The layout is https://kafka.apache.org/documentation/#recordbatch; varints are zigzag LEB128.

    batch   base offset 8 | length 4 | leader epoch 4 | magic 1 | crc 4 | attributes 2 | last offset delta 4
            | base timestamp 8 | max timestamp 8 | producer id 8 | producer epoch 2 | base sequence 4 | count 4
            | records
    record  length v | attributes 1 | timestamp delta v | offset delta v | key length v | key | value length v | value
            | header count v | headers

A null key or value has length -1. The crc (Castagnoli) covers everything from the attributes on.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import crc32c
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import CorruptFileError
from storage_lib.log_store.codec.log_columns import REPAIRS_HEADER, LogColumns
from storage_lib.log_store.kafka.kafka_compression import Compression, compress, decompress
from storage_lib.schema.encoding.varint_columns import bytes_at, read_varints, varints

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Int64s = np.ndarray[tuple[int], np.dtype[np.int64]]
    Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]
    Bools = np.ndarray[tuple[int], np.dtype[np.bool_]]

_PREFIX = struct.Struct(">qiibI")
_BODY = struct.Struct(">hiqqqhii")
_LENGTH_END = 12
_CRC_END = _PREFIX.size
BATCH_HEADER_BYTES = _PREFIX.size + _BODY.size
_MAGIC_OFFSET = 16
_MAGIC = 2
_COMPRESSION_MASK = 0x07
_LOG_APPEND_TIME = 0x08
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
_COMMIT_MARKER = 1
_MARKER_KEY_BYTES = 4
_COMPRESSIONS = frozenset(each.value for each in Compression)
_RECORD_BYTES_MIN = 7
"""Length, attributes, timestamp, offset, length of the key, length of the value, number of headers."""
_MORE = 0x80
_GROUP_BITS = 7
_LENGTH_BYTES_MAX = 5
RECORD_BYTES_MAX = 32
"""Upper bound of a record's size without key, value and headers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOwner:
    """Producer of a batch: its id and epoch, and the sequence number of its first record."""

    producer_id: int
    producer_epoch: int
    first_sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RawBatch:
    """A fetched batch with parsed header and compressed records. ``next_offset`` is the offset after its records."""

    first_offset: int
    next_offset: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    record_count: int
    packed: memoryview

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction."""
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the batch is a marker that ends a transaction, not data."""
        return bool(self.attributes & _CONTROL)

    @property
    def is_commit_marker(self) -> bool:
        """Whether the control batch commits its transaction rather than aborts it."""
        columns = columns_of([(self, self.records())])
        key = columns.keys[0].as_py() if len(columns) else None
        if key is None or len(key) < _MARKER_KEY_BYTES:
            message = f"the record batch at offset {self.first_offset} is a marker of a transaction without its key"
            raise CorruptFileError(message)
        (marker_type,) = struct.unpack_from(">h", key, 2)
        return bool(marker_type == _COMMIT_MARKER)

    def records(self) -> bytes:
        """Return the records, decompressed. Raises ``CorruptFileError``."""
        number = self.attributes & _COMPRESSION_MASK
        if number not in _COMPRESSIONS:
            message = f"the record batch at offset {self.first_offset} has the unknown compression {number}"
            raise CorruptFileError(message)
        records = decompress(Compression(number), self.packed)
        if not (self.record_count * _RECORD_BYTES_MIN <= len(records) and (self.record_count > 0 or not records)):
            raise _not_filled(self)
        return records


def encode_batch(
    keys: pa.Array,
    values: pa.Array,
    *,
    headers: bytes,
    timestamp_millis: int,
    owner: BatchOwner,
    compression: Compression,
    is_transactional: bool = True,
) -> bytes:
    """Encode the given keys and values (binary, may be null) as one batch, ready for a produce request.

    ``headers`` comes from ``encode_headers`` and is the same for every record.
    """
    count = len(values)
    records = compress(compression, _pack(keys, values, headers))
    attributes = compression.value | (_TRANSACTIONAL if is_transactional else 0)
    body = _BODY.pack(
        attributes, count - 1, timestamp_millis, timestamp_millis,
        owner.producer_id, owner.producer_epoch, owner.first_sequence, count,
    )  # fmt: skip
    crc = crc32c.crc32c(records, crc32c.crc32c(body))
    length = _CRC_END - _LENGTH_END + len(body) + len(records)
    return b"".join((_PREFIX.pack(0, length, -1, _MAGIC, crc), body, records))


def encode_headers(repairs: int | None) -> bytes:
    """Encode the headers section of a record: the snapshot that it repairs, or no headers for None."""
    if repairs is None:
        return b"\0"
    key, value = REPAIRS_HEADER.encode(), str(repairs).encode()
    return b"\x02" + bytes([len(key) * 2]) + key + bytes([len(value) * 2]) + value


def split_batches(data: memoryview, *, log: str, bucket: int) -> Iterator[RawBatch]:
    """Yield the complete batches of a fetch response, in order; omit a truncated last one.

    Raises ``CorruptFileError`` for a batch whose checksum is wrong, or of a format older than Kafka 0.11.
    """
    position = 0
    while position + BATCH_HEADER_BYTES <= len(data):
        first_offset, length, _, magic, crc = _PREFIX.unpack_from(data, position)
        end = position + _LENGTH_END + length
        if end > len(data):
            return
        where = f"log {log!r}, bucket {bucket}, offset {first_offset}"
        if magic != _MAGIC:
            message = f"{where}: a record batch of format {magic}; only format 2 (Kafka 0.11 and later) is supported"
            raise CorruptFileError(message)
        if crc32c.crc32c(data[position + _CRC_END : end]) != crc:
            message = f"{where}: the record batch does not match its checksum; check the broker's disks and the network"
            raise CorruptFileError(message)
        (
            attributes,
            last_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            _,
            _,
            count,
        ) = _BODY.unpack_from(data, position + _CRC_END)
        yield RawBatch(
            first_offset=first_offset,
            next_offset=first_offset + last_delta + 1,
            attributes=attributes,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            producer_id=producer_id,
            record_count=count,
            packed=data[position + BATCH_HEADER_BYTES : end],
        )
        position = end


def _pack(keys: pa.Array, values: pa.Array, headers: bytes) -> memoryview:
    count = len(values)
    key_lengths, value_lengths = _lengths(keys), _lengths(values)
    deltas, delta_sizes = varints(np.arange(count, dtype=np.int64))
    key_prefixes, key_prefix_sizes = varints(key_lengths)
    value_prefixes, value_prefix_sizes = varints(value_lengths)
    attributes_and_timestamp_delta = b"\0\0"
    sizes = (
        len(attributes_and_timestamp_delta) + delta_sizes
        + key_prefix_sizes + np.maximum(key_lengths, 0)
        + value_prefix_sizes + np.maximum(value_lengths, 0) + len(headers)
    )  # fmt: skip
    record_prefixes, _ = varints(sizes)
    records = pc.binary_join_element_wise(
        record_prefixes, attributes_and_timestamp_delta, deltas, key_prefixes, pc.fill_null(keys, b""),
        value_prefixes, pc.fill_null(values, b""), headers, b"",
    )  # fmt: skip
    offsets = np.frombuffer(records.buffers()[1], np.int32)
    return memoryview(records.buffers()[2])[: offsets[count]]


def _lengths(column: pa.Array) -> np.ndarray:
    return pc.fill_null(pc.binary_length(column), -1).to_numpy(zero_copy_only=False).astype(np.int64)


def grouped(batches: Iterable[RawBatch], *, rows: int, size_bytes: int) -> Iterator[list[tuple[RawBatch, bytes]]]:
    """Yield consecutive batches with their records, in groups that end when they have ``rows`` or ``size_bytes``."""
    group: list[tuple[RawBatch, bytes]] = []
    rows_left, bytes_left = rows, size_bytes
    for batch in batches:
        records = batch.records()
        group.append((batch, records))
        rows_left, bytes_left = rows_left - batch.record_count, bytes_left - len(records)
        if rows_left <= 0 or bytes_left <= 0:
            yield group
            group, rows_left, bytes_left = [], rows, size_bytes
    if group:
        yield group


def columns_of(batches: Sequence[tuple[RawBatch, bytes]]) -> LogColumns:
    """Return the records of consecutive batches, each with its ``records()``, as columns.

    Batches are often small, since a writer sends what it has after some milliseconds, so they are decoded together.
    Raises ``CorruptFileError`` for records that do not fill their batch.
    """
    batches = [each for each in batches if each[0].record_count]
    records = batches[0][1] if len(batches) == 1 else b"".join(each for _, each in batches)
    counts = np.array([batch.record_count for batch, _ in batches], np.int64)
    starts, lengths = _found_records(records, int(counts.sum()))
    ends = starts + lengths
    sizes = np.fromiter((len(each) for _, each in batches), np.int64, len(batches))

    def require(is_right: Bools, of_batch: Int64s) -> None:
        if not is_right.all():
            raise _not_filled(batches[of_batch[np.argmin(is_right)]][0])

    numbers = np.arange(len(batches))
    of_record = np.repeat(numbers, counts)
    require(ends[np.cumsum(counts) - 1] == np.cumsum(sizes), numbers)
    data = np.frombuffer(records, np.uint8)
    timestamp_deltas, position = read_varints(data, starts + 1)
    offset_deltas, position = read_varints(data, position)
    key_lengths, key_starts = read_varints(data, position)
    require((key_lengths >= -1) & (key_lengths <= ends - key_starts), of_record)
    value_lengths, value_starts = read_varints(data, key_starts + np.maximum(key_lengths, 0))
    require((value_lengths >= -1) & (value_lengths <= ends - value_starts), of_record)
    header_counts, position = read_varints(data, value_starts + np.maximum(value_lengths, 0))
    require((header_counts >= 0) & (2 * header_counts <= ends - position), of_record)
    repairs, position = _repairs(data, position, header_counts, ends)
    require(position == ends, of_record)

    def of_batches(numbers: Iterable[int]) -> Int64s:
        return np.repeat(np.fromiter(numbers, np.int64, len(batches)), counts)

    timestamps = of_batches(batch.base_timestamp for batch, _ in batches) + timestamp_deltas
    if any(batch.attributes & _LOG_APPEND_TIME for batch, _ in batches):
        by_broker = of_batches(batch.attributes & _LOG_APPEND_TIME for batch, _ in batches) != 0
        timestamps = np.where(by_broker, of_batches(batch.max_timestamp for batch, _ in batches), timestamps)
    return LogColumns(
        keys=bytes_at(data, key_starts, key_lengths),
        values=bytes_at(data, value_starts, value_lengths),
        offsets=of_batches(batch.first_offset for batch, _ in batches) + offset_deltas,
        timestamps=timestamps,
        repairs=repairs,
    )


def _not_filled(batch: RawBatch) -> CorruptFileError:
    return CorruptFileError(
        f"the record batch at offset {batch.first_offset} matches its checksum, but its records do not fill it"
    )


def _found_records(records: bytes, count: int) -> tuple[Int64s, Int64s]:
    """Return the position of each record, after its length, and the length.

    Each length gives the position of the next record, so a scan is sequential. If all records have the form that our
    own writers produce, their positions are guessed in one step and verified by the lengths found there.
    """
    guessed = _guessed(np.frombuffer(records, np.uint8), count)
    return _walked(records, count) if guessed is None else guessed


def _guessed(data: Bytes, count: int) -> tuple[Int64s, Int64s] | None:
    """Take all pairs of zeros (attributes, timestamp delta) for the records; None if they are not exactly these."""
    zeros = np.flatnonzero(data == 0)
    follows_another = np.diff(zeros, prepend=-1, append=-1) == 1
    starts = zeros[follows_another[1:] & ~follows_another[:-1]]
    if len(starts) != count or not count:
        return None
    # A length ends right before its record, and all its bytes but the last have the highest bit set.
    first = starts - 1
    may_continue = np.ones(count, bool)
    for _ in range(_LENGTH_BYTES_MAX - 1):
        may_continue &= (first > 0) & (data[np.maximum(first - 1, 0)] >= _MORE)
        first = first - may_continue
    lengths, ends = read_varints(data, first)
    chain = np.concatenate([[0], starts + lengths])
    is_proved = (ends == starts).all() and (chain[:-1] == first).all() and chain[-1] == len(data)
    return (starts, lengths) if is_proved else None


def _walked(records: bytes, count: int) -> tuple[Int64s, Int64s]:
    starts, lengths = np.empty(count, np.int64), np.empty(count, np.int64)
    position = 0
    try:
        for index in range(count):
            byte = records[position]
            position += 1
            length, shift = byte & 0x7F, _GROUP_BITS
            while byte >= _MORE and shift < _GROUP_BITS * _LENGTH_BYTES_MAX:
                byte = records[position]
                position += 1
                length |= (byte & 0x7F) << shift
                shift += _GROUP_BITS
            starts[index], lengths[index] = position, length >> 1
            position += length >> 1
    except IndexError as error:
        raise CorruptFileError("the records of a batch are longer than it, although its checksum matches") from error
    return starts, lengths


def _repairs(data: Bytes, position: Int64s, header_counts: Int64s, ends: Int64s) -> tuple[pa.Array, Int64s]:
    """Return the value of the header ``repairs-snapshot``, null for records without it, and where the headers end.

    A header that does not end within its record ends nowhere: at -1.
    """
    repairs = pa.nulls(len(position), pa.int64())
    position = position.copy()
    for nth in range(int(header_counts.max(initial=0))):
        has_nth = np.flatnonzero((header_counts > nth) & (position >= 0))
        key_lengths, key_starts = read_varints(data, position[has_nth])
        ends_key = (key_lengths >= 0) & (key_lengths <= ends[has_nth] - key_starts)
        key_lengths = np.where(ends_key, key_lengths, 0)
        value_lengths, value_starts = read_varints(data, key_starts + key_lengths)
        is_inside = ends_key & (value_lengths >= -1) & (value_lengths <= ends[has_nth] - value_starts)
        position[has_nth] = np.where(is_inside, value_starts + np.maximum(value_lengths, 0), -1)
        key_lengths, key_starts = key_lengths[is_inside], key_starts[is_inside]
        value_lengths, value_starts = value_lengths[is_inside], value_starts[is_inside]
        is_repairs = pc.equal(bytes_at(data, key_starts, key_lengths), REPAIRS_HEADER.encode())
        is_ours = is_repairs.to_numpy(zero_copy_only=False)
        if is_ours.any():
            mask = np.zeros(len(position), bool)
            mask[has_nth[is_inside][is_ours]] = True
            snapshots = _numbers(bytes_at(data, value_starts[is_ours], value_lengths[is_ours]))
            repairs = pc.replace_with_mask(repairs, pa.array(mask), snapshots)
    return repairs, position


def _numbers(texts: pa.Array) -> pa.Array:
    try:
        return texts.cast(pa.string()).cast(pa.int64())
    except pa.ArrowInvalid as error:
        message = f"a record has the header {REPAIRS_HEADER} whose value is not a number: {error}"
        raise CorruptFileError(message) from error
