"""Data files of several formats in one table, after ALTER: read, merged and compacted by us, and read by others."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pytest

from storage_lib import DynamicTable, InvalidInputError, SetOption, WarehouseCatalog, col
from tests.support.other_readers import create_with_pypaimon, needs_pypaimon, read_with_pypaimon, read_with_rust

IDENTIFIER = "db.t"
COLUMNS = {
    "id": "BIGINT",
    "flag": "BOOLEAN",
    "small": "SMALLINT",
    "v": "INT",
    "real": "FLOAT",
    "day": "DATE",
    "name": "STRING",
    "data": "BYTES",
    "price": "DECIMAL(9, 2)",
    "wide": "DECIMAL(30, 4)",
    "ms": "TIMESTAMP(3)",
    "us": "TIMESTAMP(6)",
    "a": "ARRAY<STRING>",
    "m": "MAP<STRING, INT>",
    "r": "ROW<x INT, y ARRAY<DECIMAL(10, 2)>>",
}
MOMENT = dt.datetime(2024, 5, 14, 23, 59, 59, 123000)  # noqa: DTZ001  local
VALUES: dict[str, Any] = {
    "flag": True, "small": -300, "v": 7, "real": 1.5, "day": dt.date(1900, 1, 1), "name": "ünï", "data": b"\x00\xff",
    "price": Decimal("-1.50"), "wide": Decimal("-1234567890123456789012345.0128"), "ms": MOMENT, "us": MOMENT,
    "a": ["x", None], "m": [("k", 1), ("l", None)], "r": {"x": 1, "y": [Decimal("1.50"), None]},
}  # fmt: skip
FORMATS = ("parquet", "orc", "avro")


def _rows(table: DynamicTable, *ids: int, **values: Any) -> pa.Table:
    rows = [{"id": each, **({**VALUES, **values} if each % 2 else {})} for each in ids]
    return pa.Table.from_pylist(rows, schema=table.arrow_schema)


def _mixed(tmp_path: Path) -> tuple[DynamicTable, list[dict[str, Any]]]:
    catalog = WarehouseCatalog(str(tmp_path), {"log.system": "none"})
    table = catalog.create_table(IDENTIFIER, COLUMNS, primary_key=["id"])
    for number, name in enumerate(FORMATS):
        table = table.alter(SetOption("file.format", name))
        table.append(_rows(table, 1, 2, 10 + number, 20 + number, v=number))
    last = len(FORMATS) - 1
    expected = [row for number in range(last) for row in _rows(table, 10 + number, 20 + number, v=number).to_pylist()]
    expected += _rows(table, 1, 2, 10 + last, 20 + last, v=last).to_pylist()
    return table, sorted(expected, key=lambda row: row["id"])


def _with_sorted_map(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "m": None if row["m"] is None else sorted(row["m"])}


def test_files_of_all_formats_are_merged_pruned_and_compacted(tmp_path: Path) -> None:
    table, expected = _mixed(tmp_path)

    extensions = {name.rpartition(".")[2] for name in table.inspect.files()["file_path"].to_pylist()}
    assert extensions == set(FORMATS)
    assert table.to_arrow().sort_by("id").to_pylist() == expected
    assert 11 in table.to_arrow(columns=["id"], filter=col("v") == 1)["id"].to_pylist()
    for name in FORMATS:
        table = table.alter(SetOption("file.format", name), SetOption("file.compression", "none"))
        table.append(_rows(table, 1, v=len(FORMATS) - 1))
        table.compact()
        assert table.to_arrow().sort_by("id").to_pylist() == expected
        assert [each.rpartition(".")[2] for each in table.inspect.files()["file_path"].to_pylist()] == [name]


def test_bounds_of_every_format_prune(tmp_path: Path) -> None:
    catalog = WarehouseCatalog(str(tmp_path), {"log.system": "none"})
    for name in FORMATS:
        table = catalog.create_table(f"db.{name}", COLUMNS, primary_key=["id"], options={"file.format": name})
        table.append(_rows(table, 1, v=5))
        table.append(_rows(table, 101, v=50))
        assert len(table.new_read(filter=col("v") > 20).plan().entries) == 1
        assert len(table.new_read(filter=col("id") == 1).plan().entries) == 1
        assert table.to_arrow(columns=["id"], filter=col("price") < 0).num_rows == 2


@pytest.mark.parametrize("us", [dt.datetime(9999, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 5)])  # noqa: DTZ001  local
def test_a_timestamp_that_orc_would_not_give_back_is_refused(tmp_path: Path, us: dt.datetime) -> None:
    catalog = WarehouseCatalog(str(tmp_path), {"log.system": "none"})
    table = catalog.create_table("db.t", COLUMNS, primary_key=["id"], options={"file.format": "orc"})

    with pytest.raises(InvalidInputError, match=r"'us' has a timestamp outside 1677.*file.format=parquet"):
        table.append(_rows(table, 1, us=us))

    assert table.context.file_store.snapshots.latest() is None


@needs_pypaimon
@pytest.mark.integration
def test_others_read_files_of_all_formats_in_one_table(tmp_path: Path) -> None:
    table, expected = _mixed(tmp_path)

    for _ in range(2):
        assert read_with_pypaimon(tmp_path, IDENTIFIER, tmp_path).sort_by("id").to_pylist() == expected
        theirs = read_with_rust(tmp_path, IDENTIFIER).sort_by("id").to_pylist()
        # It reads the entries of an Avro map in any order.
        assert [_with_sorted_map(row) for row in theirs] == [_with_sorted_map(row) for row in expected]
        table.compact()


@needs_pypaimon
@pytest.mark.integration
@pytest.mark.parametrize("name", FORMATS)
def test_we_read_and_append_to_files_of_pypaimon(tmp_path: Path, name: str) -> None:
    schema = (
        WarehouseCatalog(str(tmp_path), {"log.system": "none"})
        .create_table("db.like", COLUMNS, primary_key=["id"])
        .arrow_schema
    )
    # Its Avro reader supports no maps, and no nulls in arrays.
    without_nulls = {"a": ["x", ""], "r": {"x": 1, "y": [Decimal("1.50")]}} if name == "avro" else {}
    rows = pa.Table.from_pylist([{"id": 1, **VALUES, **without_nulls}, {"id": 2}], schema=schema)
    if name == "avro":
        rows = rows.drop_columns(["m"])
    options = {"bucket": "1", "file.format": name}
    create_with_pypaimon(tmp_path, IDENTIFIER, tmp_path, rows, primary_keys=["id"], options=options)

    table = WarehouseCatalog(str(tmp_path)).load_table(IDENTIFIER)

    assert table.to_arrow().sort_by("id").to_pylist() == rows.to_pylist()
    table.append(rows.slice(0, 1))
    table.compact()
    assert table.to_arrow().sort_by("id").to_pylist() == rows.to_pylist()
    assert read_with_pypaimon(tmp_path, IDENTIFIER, tmp_path).sort_by("id").to_pylist() == rows.to_pylist()


def test_each_level_has_the_format_and_the_codec_that_the_options_name(tmp_path: Path) -> None:
    catalog = WarehouseCatalog(str(tmp_path), {"log.system": "none"})
    options = {
        "file.format.per.level": "0:avro, 5:orc",
        "file.compression.per.level": "0:deflate,5:lz4",
        "write-only": "true",
    }
    table = catalog.create_table(IDENTIFIER, COLUMNS, primary_key=["id"], options=options)
    for number in range(2):
        table.append(_rows(table, 1, 2, 10 + number, v=number))
    assert {name.rpartition(".")[2] for name in table.inspect.files()["file_path"].to_pylist()} == {"avro"}

    table.compact()

    (file,) = table.inspect.files().to_pylist()
    assert (file["level"], file["file_format"]) == (5, "orc")
    path = Path(file["file_path"])
    assert po.ORCFile(path).compression == "LZ4"
    expected = [*_rows(table, 1, 2, v=1).to_pylist(), *_rows(table, 10, v=0).to_pylist()]
    expected += _rows(table, 11, v=1).to_pylist()
    assert table.to_arrow().sort_by("id").to_pylist() == expected
    assert read_with_rust(tmp_path, IDENTIFIER).num_rows == len(expected)


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("file.format.per.level", "0=avro", "levels and values such as"),
        ("file.format.per.level", "0:avro,0:orc", "each level once"),
        ("file.format.per.level", "0:csv", "csv is not supported"),
        ("file.compression.per.level", "5:rar", "rar is not known to parquet"),
    ],
)
def test_levels_that_can_not_be_are_refused_at_create(tmp_path: Path, key: str, value: str, told: str) -> None:
    catalog = WarehouseCatalog(str(tmp_path), {"log.system": "none"})

    with pytest.raises(InvalidInputError, match=told):
        catalog.create_table(IDENTIFIER, COLUMNS, primary_key=["id"], options={key: value})

    assert not list(tmp_path.rglob("schema-0"))
