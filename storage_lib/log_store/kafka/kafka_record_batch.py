"""Kafka record batches, format version 2: the header, and batches as a broker returns them.

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

from storage_lib.errors import CorruptFileError
from storage_lib.log_store.kafka.kafka_compression import Compression, decompress

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = struct.Struct(">qiibI")
BODY = struct.Struct(">hiqqqhii")
LENGTH_END = 12
CRC_END = PREFIX.size
BATCH_HEADER_BYTES = PREFIX.size + BODY.size
MAGIC = 2
_COMPRESSION_MASK = 0x07
_LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
_CONTROL = 0x20
_COMPRESSIONS = frozenset(each.value for each in Compression)
_RECORD_BYTES_MIN = 7
"""Length, attributes, timestamp, offset, length of the key, length of the value, number of headers."""


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
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def has_time_of_broker(self) -> bool:
        """Whether the broker has set the time of all records, ``max_timestamp``, when it appended them."""
        return bool(self.attributes & _LOG_APPEND_TIME)

    @property
    def is_control(self) -> bool:
        """Whether the batch is a marker that ends a transaction, not data."""
        return bool(self.attributes & _CONTROL)

    def records(self) -> bytes:
        """Return the records, decompressed. Raises ``CorruptFileError``."""
        number = self.attributes & _COMPRESSION_MASK
        if number not in _COMPRESSIONS:
            message = f"the record batch at offset {self.first_offset} has the unknown compression {number}"
            raise CorruptFileError(message)
        records = decompress(Compression(number), self.packed)
        if not (self.record_count * _RECORD_BYTES_MIN <= len(records) and (self.record_count > 0 or not records)):
            raise self.not_filled()
        return records

    def not_filled(self) -> CorruptFileError:
        """Return the error for records that do not fill the batch."""
        return CorruptFileError(
            f"the record batch at offset {self.first_offset} matches its checksum, but its records do not fill it"
        )


def split_batches(data: memoryview, *, log: str, bucket: int) -> Iterator[RawBatch]:
    """Yield the complete batches of a fetch response, in order; omit a truncated last one.

    Raises ``CorruptFileError`` for a batch whose checksum is wrong, or of a format older than Kafka 0.11.
    """
    position = 0
    while position + BATCH_HEADER_BYTES <= len(data):
        first_offset, length, _, magic, crc = PREFIX.unpack_from(data, position)
        end = position + LENGTH_END + length
        if end > len(data):
            return
        where = f"log {log!r}, bucket {bucket}, offset {first_offset}"
        if magic != MAGIC:
            message = f"{where}: a record batch of format {magic}; only format 2 (Kafka 0.11 and later) is supported"
            raise CorruptFileError(message)
        if crc32c.crc32c(data[position + CRC_END : end]) != crc:
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
        ) = BODY.unpack_from(data, position + CRC_END)
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
