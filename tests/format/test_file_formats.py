"""Contract of every file format: one suite for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from storage_lib.errors import CorruptFileError, InvalidInputError
from storage_lib.file_store.data_file.field_ids import with_field_id
from storage_lib.format.file_format import FileFormat, FormatWriter
from storage_lib.format.formats import FORMATS, new_format
from storage_lib.schema.evolution.evolved_arrays import evolved
from storage_lib.schema.filter.column_stats import ColumnStats
from storage_lib.schema.table_schema import TableSchema
from tests.support.nested_values import tables
from tests.support.schemas import schema_of


@pytest.fixture(params=sorted(FORMATS))
def file_format(request: pytest.FixtureRequest) -> FileFormat:
    return new_format(request.param, compression="zstd", compression_level=1)


def _write(rows: pa.Table, file_format: FileFormat, group_rows: int = 10) -> tuple[bytes, Mapping[str, ColumnStats]]:
    output = pa.BufferOutputStream()
    writer = file_format.writer(output, rows.schema, rows.combine_chunks().to_batches()[0])
    assert writer.row_group_rows > 0
    for start in range(0, rows.num_rows, group_rows):
        writer.write(rows.slice(start, group_rows))
    stats = writer.close()
    assert writer.size_bytes == len(output.getvalue())
    return output.getvalue().to_pybytes(), stats


def _read(
    data: bytes, file_format: FileFormat, columns: list[str], schema: TableSchema, batch_rows: int = 7
) -> pa.Table:
    reader = file_format.reader(pa.BufferReader(data), "f")
    batches = []
    for batch in reader.batches(columns, batch_rows=batch_rows):
        assert batch.num_rows <= batch_rows
        types = [schema.field(name).type for name in columns]
        arrays = [evolved(batch.column(name), of, of) for name, of in zip(columns, types, strict=True)]
        batches.append(pa.RecordBatch.from_arrays(arrays, names=columns))
    return pa.Table.from_batches(batches) if batches else pa.table({})


def _write_and_close(writer: FormatWriter, rows: pa.Table) -> None:
    writer.write(rows)
    writer.close()


EVERY = schema_of(
    "id BIGINT, flag BOOLEAN, tiny TINYINT, small SMALLINT, number INT, real FLOAT, double DOUBLE, day DATE, "
    "hour TIME(3), text STRING, code CHAR(3), data BYTES, `a.b` DECIMAL(9, 2), wide DECIMAL(38, 10), ms TIMESTAMP(3), "
    "us TIMESTAMP(6), instant TIMESTAMP_LTZ(6), tags ARRAY<STRING>, by_name MAP<STRING, TIMESTAMP(3)>, "
    "by_day MAP<DATE, TIME(3)>, seen MULTISET<STRING>, r ROW<x INT, y ARRAY<DECIMAL(20, 2)>, z BYTES>",
    key="id",
)


def _every_type(count: int) -> pa.Table:
    moment = datetime(2024, 5, 14, 23, 59, 59, 123000)  # noqa: DTZ001  local
    row = {
        "flag": True, "tiny": -128, "small": -300, "number": 7, "real": 1.5, "double": -2.5, "day": date(1900, 1, 1),
        "hour": 1234, "text": "ünï", "code": "abc", "data": b"\x00\xff", "a.b": Decimal("-1.50"),
        "wide": Decimal("-1234567890123456789012345678.0123456789"), "ms": moment, "us": moment, "instant": 1,
        "tags": ["x", None], "by_name": [("k", moment), ("l", None)], "by_day": [(date(2024, 5, 14), 77)],
        "seen": [("s", 2)], "r": {"x": 1, "y": [Decimal("1.25"), None], "z": b""},
    }  # fmt: skip
    rows = [{"id": n, **(row if n % 3 else {})} for n in range(count)]
    fields = [with_field_id(EVERY.arrow_schema.field(each.name), each.id, each.type) for each in EVERY.fields]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


def test_every_type_comes_back(file_format: FileFormat) -> None:
    rows = _every_type(25)

    data, _ = _write(rows, file_format)

    assert _read(data, file_format, rows.column_names, EVERY).to_pylist() == rows.to_pylist()
    assert _read(data, file_format, ["a.b", "id"], EVERY).to_pylist() == rows.select(["a.b", "id"]).to_pylist()
    reader = file_format.reader(pa.BufferReader(data), "f")
    assert (reader.row_count, list(reader.column_names)) == (25, rows.column_names)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(tables(rows_max=8))
def test_whatever_is_written_in_slices_is_read_back(
    file_format: FileFormat, drawn: tuple[TableSchema, pa.RecordBatch]
) -> None:
    schema, rows = drawn
    if rows.num_rows == 0:
        return
    table = pa.Table.from_batches([rows])

    try:
        data, _ = _write(table, file_format, group_rows=3)
    except InvalidInputError:
        # A timestamp that ORC can't represent; another test covers it.
        assert file_format.extension == "orc"
        return

    assert _read(data, file_format, rows.schema.names, schema).to_pylist() == table.to_pylist()


def test_statistics_are_bounds_of_what_was_written(file_format: FileFormat) -> None:
    table = pa.table(
        {
            "n": pa.array([3, None, -1, 7]),
            "f": [0.5, float("nan"), 1.0, 2.0],
            "g": pa.array([0.5, 1.5, None, 2.0], pa.float32()),
            "s": ["b", "a", "c", None],
            "none": pa.array([None] * 4, pa.int32()),
            "d": pa.array([Decimal("1.50"), None, Decimal("-2.25"), None], pa.decimal128(9, 2)),
            "l": pa.array([[1], None, [], [2]]),
        }
    )

    _, stats = _write(table, file_format, group_rows=2)

    found = {name: (each.min, each.max, each.null_count, each.row_count) for name, each in stats.items()}
    assert found == {
        "n": (-1, 7, 1, 4),
        "f": (None, None, 0, 4),
        "g": (0.5, 2.0, 1, 4),
        "s": ("a", "c", 1, 4),
        "none": (None, None, 4, 4),
        "d": (Decimal("-2.25"), Decimal("1.50"), 2, 4),
    }


def test_a_long_file_is_read_a_few_rows_at_a_time(file_format: FileFormat) -> None:
    schema = schema_of("id BIGINT, v DOUBLE", key="id")
    values = np.random.default_rng(7).random(100_000)
    rows = pa.table({"id": np.arange(100_000), "v": values})

    data, _ = _write(rows, file_format, group_rows=20_000)

    read = _read(data, file_format, ["id", "v"], schema, batch_rows=1_000)
    assert read["id"].to_numpy().tolist() == list(range(100_000))
    assert np.array_equal(read["v"].to_numpy(), values)


@pytest.mark.parametrize("data", [b"", b"no file at all", b"ORC" * 20, b"PAR1PAR1", b"Obj\x01" + b"\0" * 40])
def test_what_is_no_file_of_the_format_is_corrupt(file_format: FileFormat, data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        list(file_format.reader(pa.BufferReader(data), "f").batches(["id"], batch_rows=10))


def test_nanoseconds_are_refused_before_anything_is_written(file_format: FileFormat) -> None:
    with pytest.raises(InvalidInputError, match=r"'at'.*TIMESTAMP"):
        file_format.refuse_unsupported(pa.schema([("at", pa.list_(pa.timestamp("ns")))]))


def test_an_abandoned_file_does_not_raise(file_format: FileFormat) -> None:
    rows = _every_type(3)
    output = pa.BufferOutputStream()
    writer = file_format.writer(output, rows.schema, rows.to_batches()[0])
    writer.write(rows)
    output.close()

    writer.abandon()


def test_an_output_that_fails_is_an_error_like_any_other(file_format: FileFormat) -> None:
    rows = _every_type(3)
    output = pa.BufferOutputStream()
    writer = file_format.writer(output, rows.schema, rows.to_batches()[0])
    output.close()

    with pytest.raises((ValueError, OSError), match="closed"):
        _write_and_close(writer, rows)
    writer.abandon()


def test_every_codec_that_is_told_of_is_taken_and_others_are_refused() -> None:
    rows = _every_type(5)
    for name, codecs in FORMATS.items():
        for codec in codecs:
            chosen = new_format(name, compression=codec, compression_level=1)
            assert _read(_write(rows, chosen)[0], chosen, ["id", "text"], EVERY).num_rows == 5, (name, codec)
        with pytest.raises(InvalidInputError, match=rf"file.compression=rar .*{name}.*zstd"):
            new_format(name, compression="rar", compression_level=1)
    with pytest.raises(InvalidInputError, match=r"file.format=csv"):
        new_format("csv", compression="zstd", compression_level=1)
