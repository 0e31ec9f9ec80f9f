"""Parquet files as the table format requires them, and the trusted parts of their footers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage_lib.errors import CorruptFileError, InvalidInputError
from storage_lib.format.file_format import RowTest
from storage_lib.format.parquet_encoding import column_encodings
from storage_lib.format.parquet_format import ParquetFormat
from storage_lib.schema.filter.column_reference import col
from storage_lib.schema.filter.column_stats import ColumnStats
from storage_lib.schema.filter.predicate import Predicate


def _write(
    table: pa.Table, parquet_format: ParquetFormat, group_rows: int = 10
) -> tuple[bytes, Mapping[str, ColumnStats]]:
    output = pa.BufferOutputStream()
    writer = parquet_format.writer(output, table.schema, table.to_batches()[0])
    for start in range(0, table.num_rows, group_rows):
        writer.write(table.slice(start, group_rows))
    stats = writer.close()
    assert writer.size_bytes == len(output.getvalue())
    return output.getvalue().to_pybytes(), stats


def _read(data: bytes, columns: list[str], predicate: Predicate | None = None, batch_rows: int = 1000) -> pa.Table:
    reader = ParquetFormat().reader(pa.BufferReader(data), "f.parquet")
    batches = list(reader.batches(columns, predicate=predicate, batch_rows=batch_rows))
    assert all(batch.num_rows <= batch_rows for batch in batches)
    return pa.Table.from_batches(batches) if batches else pa.table({})


def test_types_are_stored_as_the_format_says() -> None:
    table = pa.table(
        {
            "tiny": pa.array([1], pa.int8()),
            "small": pa.array([Decimal("1.50")], pa.decimal128(9, 2)),
            "middle": pa.array([Decimal("1.50")], pa.decimal128(18, 2)),
            "wide": pa.array([Decimal("1.50")], pa.decimal128(30, 2)),
            "text": ["a"],
            "data": [b"a"],
            "day": pa.array([1], pa.date32()),
            "at": pa.array([1], pa.time32("ms")),
            "millis": pa.array([1], pa.timestamp("ms")),
            "micros": pa.array([1], pa.timestamp("us")),
            "local": pa.array([1], pa.timestamp("us", tz="UTC")),
        }
    )

    data, _ = _write(table, ParquetFormat())

    stored = pq.ParquetFile(pa.BufferReader(data))
    types = {
        column.name: (column.physical_type, str(column.logical_type)) for column in map(stored.schema.column, range(11))
    }
    assert {name: physical for name, (physical, _) in types.items()} == {
        "tiny": "INT32",
        "small": "INT32",
        "middle": "INT64",
        "wide": "FIXED_LEN_BYTE_ARRAY",
        "text": "BYTE_ARRAY",
        "data": "BYTE_ARRAY",
        "day": "INT32",
        "at": "INT32",
        "millis": "INT64",
        "micros": "INT64",
        "local": "INT64",
    }
    assert "isAdjustedToUTC=false, timeUnit=milliseconds" in types["millis"][1]
    assert "isAdjustedToUTC=true, timeUnit=microseconds" in types["local"][1]
    assert b"ARROW:schema" not in (stored.metadata.metadata or {})
    assert _read(data, table.column_names).equals(table)


def test_nanoseconds_are_refused_by_column_with_the_remedy() -> None:
    schema = pa.schema([("id", pa.int64()), ("seen", pa.timestamp("ns"))])

    with pytest.raises(InvalidInputError, match=r"'seen'.*TIMESTAMP\(6\)"):
        ParquetFormat().refuse_unsupported(schema)


def test_statistics_are_those_of_all_row_groups() -> None:
    table = pa.table(
        {
            "id": range(25),
            "word": [None if row % 5 == 0 else f"w{row:02}" for row in range(25)],
            "none": pa.nulls(25, pa.int32()),
            "seen": pa.array(
                [datetime(2024, 5, 14, 1, 2, row, tzinfo=UTC) for row in range(25)], pa.timestamp("us", "UTC")
            ),
            "price": pa.array([Decimal(row - 3).scaleb(-2) for row in range(25)], pa.decimal128(12, 2)),
        }
    )

    _, stats = _write(table, ParquetFormat())

    assert stats == {
        "id": ColumnStats(min=0, max=24, null_count=0, row_count=25),
        "word": ColumnStats(min="w01", max="w24", null_count=5, row_count=25),
        "none": ColumnStats(min=None, max=None, null_count=25, row_count=25),
        "seen": ColumnStats(
            min=datetime(2024, 5, 14, 1, 2, 0, tzinfo=UTC),
            max=datetime(2024, 5, 14, 1, 2, 24, tzinfo=UTC),
            null_count=0,
            row_count=25,
        ),
        "price": ColumnStats(min=Decimal("-0.03"), max=Decimal("0.21"), null_count=0, row_count=25),
    }


def test_a_group_of_nulls_alone_does_not_hide_the_bounds_of_the_others() -> None:
    table = pa.table({"n": pa.array([None] * 10 + [7, 5], pa.int32())})

    _, stats = _write(table, ParquetFormat())

    assert stats["n"] == ColumnStats(min=5, max=7, null_count=10, row_count=12)


def test_floats_have_bounds_only_without_nan() -> None:
    table = pa.table({"good": [1.5, -2.0], "nan": [1.5, float("nan")]})

    _, stats = _write(table, ParquetFormat())

    assert (stats["good"].min, stats["good"].max) == (-2.0, 1.5)
    assert (stats["nan"].min, stats["nan"].max) == (None, None)


def test_dates_beyond_python_have_no_bounds() -> None:
    table = pa.table({"day": pa.array([0, 10_000_000], pa.date32())})

    _, stats = _write(table, ParquetFormat())

    assert (stats["day"].min, stats["day"].max) == (None, None)


@pytest.mark.parametrize(
    ("predicate", "rows"),
    [
        (col("id") == 12, range(10, 20)),
        (col("id") > 17, range(10, 25)),
        ((col("id") < 3) | (col("id") == 24), [*range(10), *range(20, 25)]),
        (col("id") > 99, []),
        (col("other") == 1, range(25)),
    ],
)
def test_row_groups_without_a_match_are_left_out(predicate: Predicate, rows: range) -> None:
    data, _ = _write(pa.table({"id": range(25)}), ParquetFormat())

    table = _read(data, ["id"], predicate)

    assert (table["id"].to_pylist() if rows else []) == list(rows)
    assert table.num_rows == len(rows)


@pytest.mark.parametrize(
    ("wanted", "rows"),
    [
        ([38, 39, 40, 41], [19, 20]),
        ([22, 118], [11, 59]),
        (range(40, 60), range(20, 30)),
        ([39], []),
    ],
)
def test_of_few_rows_that_a_test_finds_little_else_is_decoded(wanted: Sequence[int], rows: Sequence[int]) -> None:
    data, _ = _write(pa.table({"id": range(0, 120, 2), "name": [str(number) for number in range(60)]}), ParquetFormat())
    tested: list[int] = []

    def matching(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        assert batch.schema.names == ["id"]
        tested.append(batch.num_rows)
        return np.flatnonzero(np.isin(batch.column("id"), list(wanted)))

    reader = ParquetFormat().reader(pa.BufferReader(data), "f.parquet")
    row_test = RowTest(columns=("id",), matching=matching)
    batches = list(reader.batches(["name"], predicate=col("id") > 19, row_test=row_test, batch_rows=7))

    assert [name for batch in batches for name in batch.column("name").to_pylist()] == [str(row) for row in rows]
    assert sum(tested) == 50


def test_single_row_groups_are_read_by_their_bounds() -> None:
    rows = pa.table({"id": pa.array(range(0, 120, 2), pa.int32()), "name": [str(number) for number in range(60)]})
    data, _ = _write(rows, ParquetFormat(), group_rows=25)
    reader = ParquetFormat().reader(pa.BufferReader(data), "f.parquet")

    bounds = reader.bounds("id")
    assert bounds is not None
    assert [each.tolist() for each in (bounds.lows, bounds.highs, bounds.ends)] == [
        [0, 50, 100],
        [48, 98, 118],
        [25, 50, 60],
    ]
    assert [each.tolist() for each in reader.values("id", [0, 2])] == [list(range(0, 50, 2)), list(range(100, 120, 2))]
    found = list(reader.rows_at(["name"], np.array([3, 24, 51]), batch_rows=7))
    assert [name for batch in found for name in batch.column("name").to_pylist()] == ["3", "24", "51"]


@pytest.mark.parametrize(
    "column", [pa.array(["a", "b"]), pa.array([1, None]), pa.array([1.0, 2.0]), pa.array([[1], [2]])], ids=str
)
def test_bounds_are_not_told_of_what_is_no_integer_or_may_be_null(column: pa.Array) -> None:
    data, _ = _write(pa.table({"id": column}), ParquetFormat())

    assert ParquetFormat().reader(pa.BufferReader(data), "f.parquet").bounds("id") is None


def test_row_groups_are_never_left_out_by_floats_of_which_the_footer_hides_nan() -> None:
    data, _ = _write(pa.table({"x": [1.0, float("nan")]}), ParquetFormat())

    assert _read(data, ["x"], col("x") > 2.0).num_rows == 2


def test_batches_stay_small_even_in_large_row_groups() -> None:
    data, _ = _write(pa.table({"id": range(1000)}), ParquetFormat(), group_rows=1000)

    assert _read(data, ["id"], batch_rows=7)["id"].to_pylist() == list(range(1000))


def test_what_is_not_parquet_is_named() -> None:
    with pytest.raises(CorruptFileError, match=r"data-1\.parquet is not a readable Parquet file"):
        ParquetFormat().reader(pa.BufferReader(b"nothing of the kind"), "data-1.parquet")


def test_row_groups_of_wide_rows_have_fewer_of_them() -> None:
    wide = pa.table({"text": ["x" * 100_000] * 4})

    writer = ParquetFormat().writer(pa.BufferOutputStream(), wide.schema, wide.to_batches()[0])

    assert writer.row_group_rows == 1024
    writer.abandon()


def test_dictionaries_are_for_values_that_repeat_and_compression_for_bytes_that_shrink() -> None:
    random = np.random.default_rng(1)
    count = 10_000
    sample = pa.RecordBatch.from_pydict(
        {
            "day": pa.array([f"2024-01-{row % 30:02}" for row in range(count)]),
            "id": pa.array(np.arange(count)),
            "noise": pa.array(random.random(count)),
            "flag": pa.array(random.integers(0, 2, count).astype(bool)),
            "text": pa.array([f"{value:024}" for value in random.integers(0, 2**60, count)]),
        }
    )

    encodings = column_encodings(sample, "zstd", 1)

    assert encodings.dictionary == ("day",)
    assert encodings.compression == {"day": "zstd", "id": "none", "noise": "none", "flag": "zstd", "text": "zstd"}
    assert encodings.compression_level == {"day": 1, "flag": 1, "text": 1}
    assert encodings.differences == ("id",)


def test_integers_are_stored_as_differences_where_that_is_smaller_and_read_back_as_they_were() -> None:
    random = np.random.default_rng(2)
    count = 10_000
    words = random.integers(0, 2**63 - 1, count)
    rows = pa.table(
        {
            "sorted": pa.array(np.sort(random.permutation(10 * count)[:count])),
            "extremes": pa.array(np.where(np.arange(count) % 2, 2**63 - 1, -(2**63)) // (1 + words % 3)),
            "random": pa.array(words),
            "small": pa.array(random.permutation(count).astype(np.int16)),
            "nulls": pa.array(np.arange(count), mask=np.arange(count) % 3 == 0),
            "price": pa.array(random.permutation(count)).cast(pa.decimal128(19)).cast(pa.decimal128(18, 0)),
            "cents": pa.array(random.permutation(count).astype(np.int32))
            .cast(pa.decimal128(10))
            .cast(pa.decimal128(9)),
            "day": pa.array(random.permutation(count).astype(np.int32)).cast(pa.date32()),
            "clock": pa.array(random.permutation(count).astype(np.int32)).cast(pa.time32("ms")),
            "moment": pa.array(random.integers(0, 2**40, count)).cast(pa.timestamp("us")),
            "wide": pa.array(words).cast(pa.decimal128(19, 0)),
        }
    )

    differences = column_encodings(rows.to_batches()[0], "zstd", 1).differences

    assert set(rows.column_names) - set(differences) == {"extremes", "random", "wide"}
    assert _read(_write(rows, ParquetFormat(), 5_000)[0], rows.column_names, batch_rows=20_000).equals(rows)


def test_differences_are_read_back_from_one_value_and_from_none() -> None:
    for values in ([7], [None], [None, -(2**63), None], [2**63 - 1, -(2**63)]):
        rows = pa.table({"id": pa.array(values, pa.int64())})

        assert _read(_write(rows, ParquetFormat())[0], ["id"]).equals(rows)


def test_an_uncompressed_format_compresses_nothing() -> None:
    sample = pa.RecordBatch.from_pydict({"id": list(range(100))})

    assert set(column_encodings(sample, "none", None).compression.values()) == {"none"}
    assert _read(
        _write(pa.Table.from_batches([sample]), ParquetFormat(compression="none", compression_level=None))[0], ["id"]
    )
