"""Record batches compared with kafka-python's own codec, which encodes and decodes them record by record."""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from storage_lib.errors import CorruptFileError, InvalidInputError
from storage_lib.log_store.codec.log_columns import LogColumns
from storage_lib.log_store.kafka.kafka_batch_decoding import columns_of, grouped, is_commit_marker
from storage_lib.log_store.kafka.kafka_batch_encoding import BatchOwner, encode_batch, encode_headers
from storage_lib.log_store.kafka.kafka_compression import Compression, decompress
from storage_lib.log_store.kafka.kafka_record_batch import RawBatch, split_batches
from storage_lib.schema.encoding.varint_columns import bytes_at, read_varints, varints

_LOG_APPEND_TIME = 0x08
OWNER = BatchOwner(producer_id=7, producer_epoch=3, first_sequence=11)
SLICES = st.lists(st.none() | st.binary(max_size=30), min_size=1, max_size=40)


def encoded(keys: list[bytes | None], values: list[bytes | None], *, repairs: int | None = None,
            compression: Compression = Compression.NONE) -> bytes:  # fmt: skip
    return encode_batch(
        pa.array(keys, pa.binary()),
        pa.array(values, pa.binary()),
        headers=encode_headers(repairs),
        timestamp_millis=1_000,
        owner=OWNER,
        compression=compression,
    )


def foreign(compression_type: int, headers: list[list[tuple[str, bytes | None]]]) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=compression_type,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    for index, of_record in enumerate(headers):
        builder.append(index, timestamp=500 + 7 * index, key=b"k", value=b"v" * index, headers=of_record)
    return bytes(builder.build())


def columns_in(*batches: RawBatch) -> LogColumns:
    return columns_of([(batch, batch.records()) for batch in batches])


@given(SLICES, st.randoms(use_true_random=False))
@settings(deadline=None, derandomize=True)
def test_what_we_write_is_what_kafka_python_reads(values: list[bytes | None], shuffle: object) -> None:
    keys = list(values)
    shuffle.shuffle(keys)  # type: ignore[attr-defined]

    batch = DefaultRecordBatch(encoded(keys, values, repairs=12))
    is_whole = batch.validate_crc()
    records = list(batch)

    assert is_whole
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 3, 11)
    assert batch.is_transactional
    assert [record.key for record in records] == keys
    assert [record.value for record in records] == values
    assert [record.offset for record in records] == list(range(len(values)))
    assert {(record.timestamp, tuple(record.headers)) for record in records} == {
        (1_000, (("repairs-snapshot", b"12"),))
    }


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.LZ4, Compression.ZSTD])
def test_what_we_write_we_read(compression: Compression) -> None:
    keys, values = [b"a", None, b""], [b"", b"x" * 100_000, None]

    (batch,) = split_batches(memoryview(encoded(keys, values, compression=compression)), log="t", bucket=0)
    columns = columns_in(batch)

    assert (batch.first_offset, batch.next_offset, batch.is_transactional, batch.is_control) == (0, 3, True, False)
    assert columns.keys.to_pylist() == keys
    assert columns.values.to_pylist() == values
    assert columns.repairs.to_pylist() == [None] * 3


@pytest.mark.parametrize("compression_type", [0, 1, 3, 4])
def test_what_others_write_we_read_with_times_and_headers(compression_type: int) -> None:
    headers: list[list[tuple[str, bytes | None]]] = [
        [],
        [("other", None)],
        [("other", b"x"), ("repairs-snapshot", b"123456789012345")],
        [("repairs-snapshot", b"0")],
        [("a" * 300, b"b" * 300)],
    ]

    (batch,) = split_batches(memoryview(foreign(compression_type, headers)), log="t", bucket=0)
    columns = columns_in(batch)

    assert columns.repairs.to_pylist() == [None, None, 123_456_789_012_345, 0, None]
    assert columns.timestamps.tolist() == [500, 507, 514, 521, 528]
    assert columns.values.to_pylist() == [b"v" * index for index in range(5)]


def test_zeros_in_a_value_are_not_taken_for_the_begin_of_a_record() -> None:
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=0, is_transactional=False, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        batch_size=1 << 20,
    )  # fmt: skip
    values = [b"first", b"as many pairs of zeros as records: \1\0\0, though one record has a time of its own"]
    for index, value in enumerate(values):
        builder.append(index, timestamp=500 + index, key=b"k", value=value, headers=[])

    (batch,) = split_batches(memoryview(bytes(builder.build())), log="t", bucket=0)

    assert columns_in(batch).values.to_pylist() == values


@pytest.mark.parametrize("size", [5, 60, 61, 62, 8_000, 9_000, 2_000_000])
def test_records_are_found_whatever_the_size_of_their_lengths(size: int) -> None:
    values: list[bytes | None] = [b"v" * size, b"w", b"x" * (size + 1)]

    (batch,) = split_batches(memoryview(encoded([b"k"] * 3, values)), log="t", bucket=0)

    assert columns_in(batch).values.to_pylist() == values


@given(
    st.lists(
        st.tuples(st.sampled_from(["ours", "foreign", "empty", "dated by the broker"]), SLICES, st.integers(0, 3)),
        max_size=6,
    )
)
@settings(deadline=None, derandomize=True)
def test_batches_that_are_decoded_together_have_the_records_of_each(
    parts: list[tuple[str, list[bytes | None], int]],
) -> None:
    batches, keys, values, times, offsets = [], [], [], [], []
    for first, (kind, of_part, compression) in enumerate(parts):
        data = written(kind, of_part, compression)
        (batch,) = split_batches(memoryview(data), log="t", bucket=0)
        records = [] if kind == "empty" else list(DefaultRecordBatch(data))
        by_broker = _LOG_APPEND_TIME if kind == "dated by the broker" else 0
        batches.append(
            replace(
                batch,
                first_offset=100 * first,
                record_count=len(records),
                packed=memoryview(b"") if kind == "empty" else batch.packed,
                attributes=batch.attributes | by_broker,
            )
        )
        keys += [record.key for record in records]
        values += [record.value for record in records]
        times += [batch.max_timestamp if by_broker else record.timestamp for record in records]
        offsets += [100 * first + record.offset for record in records]

    columns = columns_in(*batches)

    assert (columns.keys.to_pylist(), columns.values.to_pylist()) == (keys, values)
    assert (columns.timestamps.tolist(), columns.offsets.tolist()) == (times, offsets)


def written(kind: str, values: list[bytes | None], compression: int) -> bytes:
    if kind == "ours" and values:
        names = (Compression.NONE, Compression.LZ4, Compression.ZSTD, Compression.NONE)
        return encoded(values, values, compression=names[compression])
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=0, is_transactional=False, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        batch_size=1 << 20,
    )  # fmt: skip
    for index, value in enumerate(values):
        builder.append(index, timestamp=500 + 3 * index, key=value, value=value, headers=[])
    return bytes(builder.build())


@given(SLICES, st.sampled_from(["ours", "foreign"]), st.data())
@settings(deadline=None, derandomize=True, max_examples=500)
def test_damaged_records_with_a_right_checksum_are_corrupt_or_still_records(
    values: list[bytes | None], kind: str, data: st.DataObject
) -> None:
    """Never another error, and never bytes from outside the batch."""
    (batch,) = split_batches(memoryview(written(kind, values, 0)), log="t", bucket=0)
    records = bytearray(batch.packed)
    for _ in range(data.draw(st.integers(1, 3))):
        records[data.draw(st.integers(0, len(records) - 1))] = data.draw(st.integers(0, 255))
    count = batch.record_count + data.draw(st.sampled_from([0, 0, 0, 1, -1, -(1 << 31), (1 << 31) - 1]))
    damaged = replace(batch, packed=memoryview(bytes(records)), record_count=count)

    try:
        columns = columns_in(damaged)
    except CorruptFileError:
        return

    assert len(columns) == count
    assert sum(len(each.as_py() or b"") for each in (*columns.keys, *columns.values)) <= len(records)


RECORDS = {
    "a value that is longer than its record": b"\x12\0\0\0\x02k\x90\x4ev\0",
    "a key that is longer than its record": b"\x12\0\0\0\xc8\x01k\x02v\0",
    "a value of two gigabytes": b"\x1a\0\0\0\x02k\xec\xff\xff\xff\x0fv\0\0",
    "a record without an end": b"\x04\0\0\0\0\0\0",
    "headers that are missing": b"\x10\0\0\0\x02k\x02v\x0a",
    "a billion headers": b"\x18\0\0\0\x02k\x02v\x80\x80\x80\x80\x08",
    "a header whose value is too long": b"\x16\0\0\0\x02k\x02v\x02\x02h\x7e",
    "bytes after the headers": b"\x12\0\0\0\x02k\x02v\0\0",
    "a length of thirteen bytes": b"\xff" * 12 + b"\x01",
}


@pytest.mark.parametrize("what", RECORDS)
def test_a_malformed_record_is_corrupt(what: str) -> None:
    (batch,) = split_batches(memoryview(encoded([b"k"], [b"v"])), log="t", bucket=0)

    with pytest.raises(CorruptFileError, match=r"do not fill it|longer than it"):
        columns_in(replace(batch, packed=memoryview(RECORDS[what]), record_count=1))


def test_a_repaired_snapshot_that_is_not_a_number_is_corrupt() -> None:
    (batch,) = split_batches(memoryview(foreign(0, [[("repairs-snapshot", b"ab")]])), log="t", bucket=0)

    with pytest.raises(CorruptFileError, match="repairs-snapshot whose value is not a number"):
        columns_in(batch)


@pytest.mark.parametrize("attributes", [5, 6, 7])
def test_an_unknown_compression_is_corrupt(attributes: int) -> None:
    (batch,) = split_batches(memoryview(encoded([b"k"], [b"v"])), log="t", bucket=0)

    with pytest.raises(CorruptFileError, match=f"unknown compression {attributes}"):
        replace(batch, attributes=attributes).records()


@pytest.mark.parametrize("key", [None, b"", b"\0"])
def test_a_marker_of_a_transaction_without_its_key_is_corrupt(key: bytes | None) -> None:
    (batch,) = split_batches(memoryview(encoded([key], [b"v"])), log="t", bucket=0)

    with pytest.raises(CorruptFileError, match="marker"):
        is_commit_marker(batch)


def test_small_batches_are_decoded_in_large_groups() -> None:
    """A writer that waits some milliseconds for more records sends hundreds of batches a second."""
    (batch,) = split_batches(memoryview(encoded([b"k"] * 6, [b"v" * 100] * 6)), log="t", bucket=0)
    size = len(batch.records())

    by_rows = [len(group) for group in grouped([batch] * 1000, rows=3000, size_bytes=1 << 30)]
    by_bytes = [len(group) for group in grouped([batch] * 1000, rows=1 << 30, size_bytes=600 * size)]

    assert (by_rows, by_bytes) == ([500, 500], [600, 400])
    assert list(grouped([], rows=1, size_bytes=1)) == []


@pytest.mark.parametrize("count", [1, 2, 4, 5])
def test_records_that_do_not_fill_their_batch_are_corrupt(count: int) -> None:
    """A producer whose batch has a right checksum and a wrong number of records."""
    good, bad = (next(iter(split_batches(memoryview(foreign(0, [[]] * 3)), log="t", bucket=0))) for _ in range(2))

    with pytest.raises(CorruptFileError, match="records"):
        columns_in(good, replace(bad, first_offset=3, record_count=count), good)


def test_a_batch_cut_off_by_the_fetch_size_is_left_out() -> None:
    whole = encoded([None], [b"a"])

    for cut in range(1, len(whole)):
        batches = list(split_batches(memoryview(whole + whole[:cut]), log="t", bucket=0))
        assert len(batches) == 1


@pytest.mark.parametrize("position", [21, 40, 61, 70])
def test_a_flipped_bit_is_found_and_placed(position: int) -> None:
    data = bytearray(encoded([b"k"], [b"some value"]))
    data[position] ^= 1

    with pytest.raises(CorruptFileError, match=r"log 't', bucket 4, offset 0.*checksum"):
        list(split_batches(memoryview(data), log="t", bucket=4))


def test_formats_of_before_kafka_0_11_are_refused() -> None:
    data = bytearray(encoded([b"k"], [b"v"]))
    data[16] = 1

    with pytest.raises(CorruptFileError, match="format 1"):
        list(split_batches(memoryview(data), log="t", bucket=0))


def test_snappy_is_read_as_java_and_as_librdkafka_write_it() -> None:
    content = b"the same again, " * 100
    bare = bytes(pa.compress(content, codec="snappy", asbytes=True))
    framed = b"\x82SNAPPY\0" + b"\0\0\0\1" * 2
    half = len(content) // 2
    for part in (content[:half], content[half:]):
        block = bytes(pa.compress(part, codec="snappy", asbytes=True))
        framed += len(block).to_bytes(4, "big") + block

    assert decompress(Compression.SNAPPY, memoryview(bare)) == content
    assert decompress(Compression.SNAPPY, memoryview(framed)) == content


@pytest.mark.parametrize("compression", [each for each in Compression if each is not Compression.NONE])
def test_what_can_not_be_unpacked_is_corrupt(compression: Compression) -> None:
    with pytest.raises(CorruptFileError, match=compression.name.lower()):
        decompress(compression, memoryview(b"\x05\xff not packed at all"))


def test_gzip_is_read() -> None:
    packer = zlib.compressobj(wbits=31)
    packed = packer.compress(b"abc") + packer.flush()

    assert decompress(Compression.GZIP, memoryview(packed)) == b"abc"


def test_codecs_we_do_not_write_are_refused_by_name() -> None:
    with pytest.raises(InvalidInputError, match=r"compression\.type='gzip'.*none, lz4, zstd"):
        Compression.for_writing("gzip")


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=50))
@settings(deadline=None, derandomize=True)
def test_varints_come_back(numbers: list[int]) -> None:
    column, sizes = varints(np.array(numbers, np.int64))
    data = np.frombuffer(b"".join(column.to_pylist()) or b"\0", np.uint8)
    starts = np.cumsum([0, *sizes.tolist()])

    found, ends = read_varints(data, starts[:-1])

    assert found.tolist() == numbers
    assert ends.tolist() == starts[1:].tolist()


@given(st.binary(max_size=60), st.data())
@settings(deadline=None, derandomize=True)
def test_slices_of_any_length_are_gathered(content: bytes, data: st.DataObject) -> None:
    starts = data.draw(st.lists(st.integers(0, len(content)), max_size=20))
    lengths = [data.draw(st.integers(-1, len(content) - start)) for start in starts]

    found = bytes_at(np.frombuffer(content, np.uint8), np.array(starts, np.int64), np.array(lengths, np.int64))

    expected = [None if n < 0 else content[s : s + n] for s, n in zip(starts, lengths, strict=True)]
    assert found.to_pylist() == expected
