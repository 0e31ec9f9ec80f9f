"""Reads of a remote file send few requests, and request no more than is cached."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage_lib.errors import UnavailableError
from storage_lib.format.parquet_format import ParquetFormat
from storage_lib.io.remote.range_input import TAIL_BYTES, open_ranges

MIB = 1024 * 1024


class Remote:
    """File that counts its requests."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.asked: list[tuple[int, int]] = []

    def open(self) -> pa.NativeFile:
        return open_ranges(self.read, size=len(self.data), tail=self.data[-TAIL_BYTES:])

    def read(self, offset: int, length: int) -> bytes:
        self.asked.append((offset, length))
        assert offset + length <= len(self.data)
        return self.data[offset : offset + length]


def parquet_file(columns: int) -> bytes:
    random = np.random.default_rng(7)
    rows = pa.table({f"c{number}": random.integers(0, 2**60, 200_000) for number in range(columns)})
    sink = io.BytesIO()
    pq.write_table(rows, sink, row_group_size=32_768, compression="none", use_dictionary=False)
    return sink.getvalue()


def rows_of(remote: Remote, columns: list[str]) -> int:
    """Read these columns as tables do; return the number of rows."""
    with remote.open() as opened:
        reader = ParquetFormat().reader(opened, "remote.parquet")
        return sum(batch.num_rows for batch in reader.batches(columns, batch_rows=8192))


def test_a_file_no_larger_than_its_tail_is_asked_for_nothing_more() -> None:
    remote = Remote(b"x" * TAIL_BYTES)

    with remote.open() as opened:
        assert opened.read() == remote.data
    assert remote.asked == []


def test_a_scan_asks_for_ever_more_at_once_up_to_a_bound() -> None:
    remote = Remote(bytes(64 * MIB))

    with remote.open() as opened:
        while opened.read(256 * 1024):
            pass

    lengths = [length for _, length in remote.asked]
    assert len(lengths) < 20
    assert max(lengths) == 8 * MIB
    assert sum(lengths) <= len(remote.data)


def test_a_jump_asks_for_little() -> None:
    remote = Remote(bytes(range(256)) * (64 * MIB // 256))

    with remote.open() as opened:
        for place in (40 * MIB, 10 * MIB, 30 * MIB):
            opened.seek(place)
            assert opened.read(4) == b"\x00\x01\x02\x03"

    assert [offset for offset, _ in remote.asked] == [40 * MIB, 10 * MIB, 30 * MIB]
    assert max(length for _, length in remote.asked) <= 128 * 1024


def test_parquet_is_scanned_in_few_requests_and_one_column_without_the_others() -> None:
    """16 columns of 7 row groups are 112 column chunks."""
    remote = Remote(parquet_file(columns=16))
    assert rows_of(remote, [f"c{number}" for number in range(16)]) == 200_000
    assert len(remote.asked) <= 10

    remote.asked.clear()
    assert rows_of(remote, ["c7"]) == 200_000
    assert sum(length for _, length in remote.asked) < len(remote.data) / 4


def test_reads_past_the_end_are_short_and_seeks_work_from_all_sides() -> None:
    remote = Remote(bytes(range(256)) * (MIB // 128))

    with remote.open() as opened:
        opened.seek(-2, 2)
        assert opened.read(10) == b"\xfe\xff"
        assert opened.read(10) == b""
        opened.seek(5)
        opened.seek(3, 1)
        assert opened.tell() == 8
        assert opened.read(1) == b"\x08"


def test_an_error_of_the_store_comes_through_arrow_as_it_is() -> None:
    def broken(offset: int, length: int) -> bytes:
        message = f"no answer for {offset}, {length}"
        raise UnavailableError(message)

    data = parquet_file(columns=4)
    opened = open_ranges(broken, size=len(data), tail=data[-TAIL_BYTES:])

    with pytest.raises(UnavailableError, match="no answer"):
        pq.ParquetFile(opened).read()
