"""Tables of other engines that need unsupported features are refused when opened, read or written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from storage_lib import DynamicTable, InvalidInputError, WarehouseCatalog
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.data_file_reader import DataFileReader
from tests.support.paimon_core import PaimonCore

COLUMNS = {"dt": "STRING NOT NULL", "id": "BIGINT NOT NULL", "n": "INT"}
NAME = "db.t"


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """Create a table of two rows, partitioned by ``dt``, with the key ``(dt, id)`` in one bucket."""
    catalog = WarehouseCatalog(str(tmp_path), {"log.system": "none"})
    table = catalog.create_table(NAME, COLUMNS, primary_key=["dt", "id"], partition_by=["dt"])
    table.append(rows("a", "b"))
    return tmp_path


def rows(*days: str) -> pa.Table:
    return pa.table({"dt": list(days), "id": range(len(days)), "n": pa.array([1] * len(days), pa.int32())})


def reopened(warehouse: Path, edit: Callable[[dict[str, Any]], Any]) -> DynamicTable:
    """Reopen the table with its schema edited as by another engine."""
    (path,) = warehouse.rglob("schema-0")
    schema = json.loads(path.read_text())
    edit(schema)
    path.write_text(json.dumps(schema))
    return WarehouseCatalog(str(warehouse)).load_table(NAME)


@pytest.mark.parametrize(
    ("type_", "remedy"),
    [
        ("VECTOR<FLOAT, 4>", r"make the column ARRAY<FLOAT>"),
        ({"type": "VECTOR", "element": "FLOAT", "length": 4}, "'VECTOR' is one of Paimon's .*ARRAY<FLOAT>"),
        ("BLOB", r"'BLOB' is one of Paimon's .*BYTES"),
        ("GEOMETRY('OGC:CRS84')", r"BYTES \(well-known binary\)"),
        ("GEOGRAPHY('OGC:CRS84', SPHERICAL) NOT NULL", r"BYTES \(well-known binary\)"),
        ({"type": "ARRAY", "element": "BLOB"}, "BYTES"),
    ],
)
def test_a_column_of_a_type_that_is_not_kept_here_is_named_with_the_remedy(
    warehouse: Path, type_: object, remedy: str
) -> None:
    with pytest.raises(InvalidInputError, match=rf"schema-0: column 'extra': .*{remedy}.*open the table then"):
        reopened(warehouse, lambda schema: schema["fields"].append({"id": 9, "name": "extra", "type": type_}))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("row-tracking.enabled", "true"),
        ("data-evolution.enabled", "true"),
        ("blob-field", "n"),
        ("chain-table.enabled", "true"),
        ("scan.fallback-branch", "history"),
        ("scan.primary-branch", "live"),
        ("data-file.path-directory", "data"),
        ("index-file-in-data-file-dir", "true"),
        ("pk-clustering-override", "true"),
        ("pk-vector.index.columns", "n"),
        ("pk-full-text.index.columns", "n"),
        ("sequence.snapshot-ordering", "true"),
        ("record-level.expire-time", "1 d"),
        ("rowkind.field", "n"),
    ],
)
def test_an_option_that_would_be_passed_over_is_refused_by_name(warehouse: Path, key: str, value: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"table db\.t has option {key}={value}, .*Read it with that engine"):
        reopened(warehouse, lambda schema: schema["options"].update({key: value}))


def test_an_option_that_is_switched_off_does_no_harm(warehouse: Path) -> None:
    table = reopened(warehouse, lambda schema: schema["options"].update({"row-tracking.enabled": "False"}))

    assert table.to_arrow().num_rows == 2


def test_a_table_whose_rows_wait_for_their_bucket_is_refused(warehouse: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"option bucket=-2: .*rewrite it there with a fixed number of buckets"):
        reopened(warehouse, lambda schema: schema["options"].update({"bucket": "-2"}))


def test_a_key_across_partitions_needs_dynamic_buckets(tmp_path: Path) -> None:
    catalog = WarehouseCatalog(str(tmp_path), {"log.system": "none"})

    with pytest.raises(InvalidInputError, match=r"partition column 'dt' is not in the primary key.*bucket=-1"):
        catalog.create_table(NAME, COLUMNS, primary_key=["id"], partition_by=["dt"])


def test_a_file_with_some_columns_of_its_rows_is_refused_whatever_the_options_say(
    warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = WarehouseCatalog(str(warehouse)).load_table(NAME)
    read = DataFileReader.read

    def read_in_part(reader: DataFileReader, file: DataFileMeta, *given: Any, **more: Any) -> Iterator[pa.RecordBatch]:
        return read(reader, replace(file, write_cols=("n",)), *given, **more)

    monkeypatch.setattr(DataFileReader, "read", read_in_part)

    with pytest.raises(InvalidInputError, match=r"\.parquet holds some columns of its rows only \(n\).*data-evolution"):
        table.to_arrow()


@pytest.mark.parametrize("format_", ["parquet", "orc"])
def test_manifests_in_another_format_are_named_with_the_remedy(warehouse: Path, format_: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"manifest.format={format_}: its manifests.*CREATE TABLE"):
        reopened(warehouse, lambda schema: schema["options"].update({"manifest.format": format_}))
    reopened(warehouse, lambda schema: schema["options"].update({"manifest.format": "avro"}))


@pytest.mark.integration
def test_a_manifest_in_parquet_is_named_for_what_it_is_where_the_option_is_gone(warehouse: Path) -> None:
    table = WarehouseCatalog(str(warehouse)).load_table(NAME)
    with PaimonCore() as java:
        schema = table.schema
        other = replace(schema, options={"bucket": "1", "manifest.format": "parquet"})
        java.create(warehouse, "db.theirs", other)
        java.write(warehouse, "db.theirs", [("a", 1, 1)], other)
    (path,) = warehouse.rglob("theirs/schema/schema-0")
    path.write_text(path.read_text().replace("manifest.format", "x.format"))
    with pytest.raises(InvalidInputError, match=r"file of format parquet, of a table with option manifest.format"):
        WarehouseCatalog(str(warehouse)).load_table("db.theirs").to_arrow()
