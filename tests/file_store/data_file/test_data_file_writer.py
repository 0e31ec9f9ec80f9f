"""The metadata of data files, field by field, compared with the files on disk."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal

import crc32c
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage_lib.errors import UnavailableError
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta, FileSource, SimpleStats
from storage_lib.file_store.data_file.file_checksum import encode_checksum
from storage_lib.format.parquet_format import ParquetFormat
from storage_lib.schema.filter.column_stats import decode_stats
from storage_lib.schema.types.row_kind import RowKind
from tests.support.bucket_on_disk import BucketOnDisk, row_kinds, schema_of
from tests.support.fake_environment import STARTED_MILLIS, fake_environment
from tests.support.faulty_file_io import Fault, FaultKind, FaultyFileIO

INSERT, UPDATE, DELETE = RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE
NINE_HOURS_MS = 9 * 3600 * 1000


@pytest.fixture
def _tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("_tokyo")
def test_every_field_of_the_metadata_is_exact() -> None:
    bucket = BucketOnDisk(schema_of("id BIGINT; name STRING", ["id"]), fake_environment())
    writer = bucket.writer()
    rows = [(4, "d"), (1, "a name of more than 16 letters"), (2, None), (3, "c"), (1, "b")]
    writer.write(bucket.batch(rows), row_kinds([INSERT, INSERT, DELETE, UPDATE, INSERT]))

    (file,) = writer.prepare_commit().new_files

    data = bucket.environment.file_io.read_bytes("/table/bucket-0/data-name-1-0.parquet")
    size = len(data)
    one = bytes.fromhex("0000000100000000000000000100000000000000")
    four = bytes.fromhex("0000000100000000000000000400000000000000")
    assert file == DataFileMeta(
        file_name="data-name-1-0.parquet",
        embedded_file_index=encode_checksum(crc32c.crc32c(data)),
        file_size=size,
        row_count=4,
        min_key=one,
        max_key=four,
        key_stats=SimpleStats(min_values=one, max_values=four, null_counts=(0,)),
        value_stats=SimpleStats(
            min_values=bytes.fromhex("00000002000000000000000001000000000000006200000000000081"),
            max_values=bytes.fromhex("00000002000000000000000004000000000000006400000000000081"),
            null_counts=(0, 1),
        ),
        min_sequence_number=0,
        max_sequence_number=4,
        schema_id=0,
        level=0,
        creation_time_ms=STARTED_MILLIS + NINE_HOURS_MS,
        delete_row_count=1,
        file_source=FileSource.APPEND,
        value_stats_cols=("id", "name"),
    )


def test_bounds_of_every_type_are_those_of_the_rows_and_long_ones_are_cut_upwards() -> None:
    schema = schema_of(
        "k STRING; flag BOOLEAN; tiny TINYINT; price DECIMAL(10, 2); wide DECIMAL(30, 4); x DOUBLE; day DATE; "
        "seen TIMESTAMP(6); text STRING; data BYTES",
        ["k"],
    )
    bucket = BucketOnDisk(schema, fake_environment())
    long = "customer 00000000000001"
    low = (
        long,
        False,
        -3,
        Decimal("-12.34"),
        Decimal("-1.5"),
        -0.5,
        date(1969, 1, 1),
        datetime(1969, 1, 1),  # noqa: DTZ001  a TIMESTAMP has no zone
        "a" * 20,
        b"\x01",
    )
    high = (
        "z",
        True,
        9,
        Decimal("5.00"),
        Decimal(7),
        2.0,
        date(2024, 5, 14),
        datetime(2024, 5, 14),  # noqa: DTZ001  likewise
        "b" * 20,
        b"\xff" * 20,
    )

    bucket.commit([high, low])

    (file,) = bucket.files
    stats = decode_stats(file.value_stats, schema.fields, 2)
    bounds = {name: (column.min, column.max) for name, column in stats.items()}
    assert bounds == {
        "k": (long[:16], "z"),
        "flag": (False, True),
        "tiny": (-3, 9),
        "price": (Decimal("-12.34"), Decimal("5.00")),
        "wide": (Decimal("-1.5000"), Decimal("7.0000")),
        "x": (-0.5, 2.0),
        "day": (date(1969, 1, 1), date(2024, 5, 14)),
        "seen": (datetime(1969, 1, 1), datetime(2024, 5, 14)),  # noqa: DTZ001
        "text": ("a" * 16, "b" * 15 + "c"),
        "data": (None, None),
    }
    assert bucket.key_value.comparable_key(file.min_key) == (long,)


def test_columns_on_disk_have_the_names_order_and_ids_of_the_format() -> None:
    bucket = BucketOnDisk(schema_of("name STRING; id BIGINT; part INT", ["part", "id"]), fake_environment())
    bucket.commit([("a", 1, 7)])

    data = bucket.environment.file_io.read_bytes(f"/table/bucket-0/{bucket.files[0].file_name}")
    stored = pq.ParquetFile(pa.BufferReader(data)).schema_arrow

    ids = [(field.name, int(field.metadata[b"PARQUET:field_id"]), field.nullable) for field in stored]
    assert ids == [
        ("_KEY_part", 1073741823 + 2, False),
        ("_KEY_id", 1073741823 + 1, False),
        ("_SEQUENCE_NUMBER", 2147483646, False),
        ("_VALUE_KIND", 2147483645, False),
        ("name", 0, True),
        ("id", 1, False),
        ("part", 2, False),
    ]


def test_a_file_ends_with_the_row_group_that_takes_it_past_the_target_size() -> None:
    bucket = BucketOnDisk(
        schema_of("id BIGINT; name STRING", ["id"]),
        fake_environment(),
        target_file_size=20_000,
        file_format=ParquetFormat(row_group_rows_max=1000, compression="none", compression_level=None),
    )

    bucket.commit([(row, f"{row:020}") for row in range(5_500)])

    in_key_order = sorted(bucket.files, key=lambda file: file.min_key[-8:][::-1])
    assert [file.row_count for file in in_key_order] == [1000, 1000, 1000, 1000, 1000, 500]
    assert all(file.file_size > 20_000 for file in in_key_order[:-1])
    assert [bucket.key_value.comparable_key(file.max_key) for file in in_key_order[:2]] == [(999,), (1999,)]
    assert bucket.rows(["id"], ordered=True) == [(row,) for row in range(5_500)]


def test_small_batches_are_gathered_into_full_row_groups() -> None:
    bucket = BucketOnDisk(
        schema_of("id BIGINT; name STRING", ["id"]),
        fake_environment(),
        file_format=ParquetFormat(row_group_rows_max=100),
    )
    batches = [
        bucket.key_value.to_key_value(
            bucket.batch([(row, "x")]), row_kinds([INSERT]), pa.array([row]).to_numpy().astype("int64")
        )
        for row in range(250)
    ]

    (file,) = bucket.data_files.write(batches, level=0)

    data = bucket.environment.file_io.read_bytes(f"/table/bucket-0/{file.file_name}")
    metadata = pq.read_metadata(pa.BufferReader(data))
    assert [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)] == [100, 100, 50]
    assert file.row_count == 250


def test_no_rows_make_no_file() -> None:
    bucket = BucketOnDisk(schema_of("id BIGINT", ["id"]), fake_environment())

    assert bucket.data_files.write([], level=0) == []
    assert bucket.data_files.take_unsynced() == []


@pytest.mark.parametrize("at", [1, 2])
def test_a_failed_write_leaves_no_file(at: int) -> None:
    environment = fake_environment()
    faulty = fake_environment(FaultyFileIO(environment.file_io, Fault(FaultKind.FAIL, at=at, operation="open_output")))
    bucket = BucketOnDisk(
        schema_of("id BIGINT", ["id"]), faulty, target_file_size=1, file_format=ParquetFormat(row_group_rows_max=1)
    )
    writer = bucket.writer()
    writer.write(bucket.batch([(1,), (2,), (3,)]), row_kinds([INSERT] * 3))

    with pytest.raises(UnavailableError):
        writer.prepare_commit()

    assert environment.file_io.list_directory("/table/bucket-0") == []
    assert writer.take_unsynced() == []
