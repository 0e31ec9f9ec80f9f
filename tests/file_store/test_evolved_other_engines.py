"""Tables altered by this library, read by independent programs, and vice versa."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from storage_lib import WarehouseCatalog, col
from storage_lib.schema.evolution.schema_changes import AddColumn, AlterType, DropColumn, MoveColumn, RenameColumn
from tests.support.other_readers import (
    alter_with_pypaimon,
    append_with_pypaimon,
    create_with_pypaimon,
    needs_pypaimon,
    read_with_pypaimon,
    read_with_rust,
)
from tests.support.whole_rows import whole_rows

IDENTIFIER = "db.t"


@needs_pypaimon
@pytest.mark.integration
def test_others_read_a_table_that_we_altered(tmp_path: Path) -> None:
    catalog = WarehouseCatalog(str(tmp_path), {"log.system": "none"})
    columns = {"id": "BIGINT", "v": "INT", "name": "STRING", "price": "DECIMAL(6, 2)"}
    table = catalog.create_table(IDENTIFIER, columns, primary_key=["id"])
    first = {"id": [1, 2], "v": [7, -7], "name": ["one", "two"], "price": [Decimal("1.50"), None]}
    table.append(pa.table(first, schema=table.arrow_schema))
    table = table.alter(
        RenameColumn("v", "value"),
        AlterType("value", "BIGINT"),
        DropColumn("name"),
        AddColumn("name", "STRING", after="id"),
        MoveColumn("price", first=True),
    )
    table.append(whole_rows(table, {"id": [2, 3], "value": [2**40, 3], "name": ["new", None]}))
    ours = table.to_arrow().sort_by("id").to_pylist()

    for _ in range(2):
        for theirs in (read_with_rust(tmp_path, IDENTIFIER), read_with_pypaimon(tmp_path, IDENTIFIER, tmp_path)):
            assert theirs.select(table.arrow_schema.names).sort_by("id").to_pylist() == ours
        table.compact()
    assert [row["name"] for row in ours] == [None, "new", None]


@needs_pypaimon
@pytest.mark.integration
def test_we_read_and_append_to_a_table_that_pypaimon_altered(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int32()), ("name", pa.string())])
    rows = pa.table({"id": [1, 2], "v": [7, -7], "name": ["one", "two"]}, schema=schema)
    create_with_pypaimon(tmp_path, IDENTIFIER, tmp_path, rows, primary_keys=["id"], options={"bucket": "1"})
    alter_with_pypaimon(
        tmp_path,
        IDENTIFIER,
        [["add_column", "note", "STRING"], ["rename_column", "v", "value"], ["update_column_type", "value", "BIGINT"]],
    )
    newer = pa.schema([schema.field("id"), ("value", pa.int64()), ("name", pa.string()), ("note", pa.string())])
    more = pa.table({"id": [2, 3], "value": [2**40, 3], "name": ["x", "y"], "note": ["a", None]}, schema=newer)
    append_with_pypaimon(tmp_path, IDENTIFIER, tmp_path, more)

    table = WarehouseCatalog(str(tmp_path)).load_table(IDENTIFIER)

    expected = [
        {"id": 1, "value": 7, "name": "one", "note": None},
        {"id": 2, "value": 2**40, "name": "x", "note": "a"},
        {"id": 3, "value": 3, "name": "y", "note": None},
    ]
    assert table.to_arrow().sort_by("id").to_pylist() == expected
    assert table.to_arrow(filter=col("value") == 7)["id"].to_pylist() == [1]
    table.append(more.slice(0, 1))
    table.compact()
    assert read_with_pypaimon(tmp_path, IDENTIFIER, tmp_path).sort_by("id").to_pylist() == expected
