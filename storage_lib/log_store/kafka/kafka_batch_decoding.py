"""Decode Kafka record batches (``kafka_record_batch``) to columns, many batches at once."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import CorruptFileError
from storage_lib.log_store.codec.log_columns import REPAIRS_HEADER, LogColumns
from storage_lib.schema.encoding.varint_columns import bytes_at, read_varints

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from storage_lib.log_store.kafka.kafka_record_batch import RawBatch

    Int64s = np.ndarray[tuple[int], np.dtype[np.int64]]
    Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]
    Bools = np.ndarray[tuple[int], np.dtype[np.bool_]]

_COMMIT_MARKER = 1
_MARKER_KEY_BYTES = 4
_MORE = 0x80
_GROUP_BITS = 7
_LENGTH_BYTES_MAX = 5


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
            raise batches[of_batch[np.argmin(is_right)]][0].not_filled()

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
    if any(batch.has_time_of_broker for batch, _ in batches):
        by_broker = of_batches(batch.has_time_of_broker for batch, _ in batches) != 0
        timestamps = np.where(by_broker, of_batches(batch.max_timestamp for batch, _ in batches), timestamps)
    return LogColumns(
        keys=bytes_at(data, key_starts, key_lengths),
        values=bytes_at(data, value_starts, value_lengths),
        offsets=of_batches(batch.first_offset for batch, _ in batches) + offset_deltas,
        timestamps=timestamps,
        repairs=repairs,
    )


def is_commit_marker(batch: RawBatch) -> bool:
    """Return whether a control batch commits its transaction rather than aborts it. Raises ``CorruptFileError``."""
    columns = columns_of([(batch, batch.records())])
    key = columns.keys[0].as_py() if len(columns) else None
    if key is None or len(key) < _MARKER_KEY_BYTES:
        message = f"the record batch at offset {batch.first_offset} is a marker of a transaction without its key"
        raise CorruptFileError(message)
    (marker_type,) = struct.unpack_from(">h", key, 2)
    return bool(marker_type == _COMMIT_MARKER)


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
