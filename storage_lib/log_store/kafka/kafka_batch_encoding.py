"""Encode rows as a Kafka record batch (``kafka_record_batch``), by column instead of record by record."""

from __future__ import annotations

from dataclasses import dataclass

import crc32c
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.log_store.codec.log_columns import REPAIRS_HEADER
from storage_lib.log_store.kafka.kafka_compression import Compression, compress
from storage_lib.log_store.kafka.kafka_record_batch import BODY, CRC_END, LENGTH_END, MAGIC, PREFIX, TRANSACTIONAL
from storage_lib.schema.encoding.varint_columns import varints

RECORD_BYTES_MAX = 32
"""Upper bound of a record's size without key, value and headers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOwner:
    """Producer of a batch: its id and epoch, and the sequence number of its first record."""

    producer_id: int
    producer_epoch: int
    first_sequence: int


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
    attributes = compression.value | (TRANSACTIONAL if is_transactional else 0)
    body = BODY.pack(
        attributes, count - 1, timestamp_millis, timestamp_millis,
        owner.producer_id, owner.producer_epoch, owner.first_sequence, count,
    )  # fmt: skip
    crc = crc32c.crc32c(records, crc32c.crc32c(body))
    length = CRC_END - LENGTH_END + len(body) + len(records)
    return b"".join((PREFIX.pack(0, length, -1, MAGIC, crc), body, records))


def encode_headers(repairs: int | None) -> bytes:
    """Encode the headers section of a record: the snapshot that it repairs, or no headers for None."""
    if repairs is None:
        return b"\0"
    key, value = REPAIRS_HEADER.encode(), str(repairs).encode()
    return b"\x02" + bytes([len(key) * 2]) + key + bytes([len(value) * 2]) + value


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
