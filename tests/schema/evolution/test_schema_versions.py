"""A table that was dropped or recreated since it was opened is detected, even after earlier successful checks."""

from __future__ import annotations

import pyarrow as pa
import pytest

from storage_lib import NotFoundError
from storage_lib.io.local.memory_file_io import MemoryFileIO
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.schema.evolution.schema_history import SchemaHistory
from storage_lib.schema.evolution.schema_versions import SchemaVersions
from storage_lib.schema.options.table_options import UUID_OPTION
from storage_lib.schema.table_schema import TableSchema, new_table_schema

PATHS = TablePaths("/table")


def _schema(uuid: str) -> TableSchema:
    return new_table_schema(
        pa.schema([("id", pa.int64())]), options={"bucket": "1", "bucket-key": "id", UUID_OPTION: uuid}, time_millis=1
    )


def _opened(files: MemoryFileIO, uuid: str) -> SchemaVersions:
    history = SchemaHistory(files, PATHS)
    schema = _schema(uuid)
    assert history.append(schema)
    return SchemaVersions(schema, history)


def test_a_table_recreated_after_it_was_found_right_is_noticed() -> None:
    files = MemoryFileIO()
    versions = _opened(files, "first")
    versions.check_still_there("shop.orders")
    versions.check_still_there("shop.orders")

    files.replace(PATHS.schema_path(0), _schema("second").to_json())

    for _ in range(2):
        with pytest.raises(NotFoundError, match=r"shop\.orders was dropped and recreated since it was opened"):
            versions.check_still_there("shop.orders")


def test_a_table_dropped_after_it_was_found_right_is_noticed() -> None:
    files = MemoryFileIO()
    versions = _opened(files, "first")
    versions.check_still_there("shop.orders")

    files.delete(PATHS.schema_path(0), below=PATHS.root)

    with pytest.raises(NotFoundError, match=r"shop\.orders was dropped since it was opened"):
        versions.check_still_there("shop.orders")
