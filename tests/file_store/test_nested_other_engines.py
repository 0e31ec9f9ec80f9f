"""Our nested columns read by independent programs, and vice versa."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from storage_lib import WarehouseCatalog
from tests.file_store.test_other_engines import on_disk
from tests.support.other_readers import create_with_pypaimon, needs_pypaimon, read_with_pypaimon, read_with_rust
from tests.support.schemas import schema_of

IDENTIFIER = "db.t"
COLUMNS = "id BIGINT, a ARRAY<STRING>, m MAP<STRING, INT>, r ROW<x INT, y ARRAY<DECIMAL(10, 2)>>, v STRING"
ROWS = [
    (1, ["x", None, ""], [("k", 1), ("l", None)], {"x": 1, "y": [Decimal("1.50")]}, "one"),
    (2, [], [], {"x": None, "y": []}, "two"),
    (3, None, None, None, None),
]


@needs_pypaimon
@pytest.mark.integration
def test_others_read_our_nested_columns_before_and_after_compaction(tmp_path: Path) -> None:
    table = on_disk(schema_of(COLUMNS, key="id"), tmp_path)
    table.append([(1, None, None, None, "old"), *ROWS[1:]])
    table.append(ROWS[:1])

    for _ in range(2):
        for theirs in (read_with_rust(tmp_path, IDENTIFIER), read_with_pypaimon(tmp_path, IDENTIFIER, tmp_path)):
            in_order = theirs.sort_by("id").to_pylist()
            assert [tuple(row[name] for name in ("id", "a", "m", "r", "v")) for row in in_order] == ROWS
        table.compact()


@needs_pypaimon
@pytest.mark.integration
def test_we_read_and_append_to_nested_columns_of_pypaimon(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("a", pa.list_(pa.string())),
            ("m", pa.map_(pa.string(), pa.int32())),
            ("r", pa.struct([("x", pa.int32()), ("y", pa.list_(pa.decimal128(10, 2)))])),
            ("v", pa.string()),
        ]
    )
    rows = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in ROWS], schema=schema)
    create_with_pypaimon(tmp_path, IDENTIFIER, tmp_path, rows, primary_keys=["id"], options={"bucket": "1"})

    table = WarehouseCatalog(str(tmp_path)).load_table(IDENTIFIER)

    assert table.to_arrow().sort_by("id").to_pylist() == rows.to_pylist()
    table.append(rows.slice(0, 1))
    table.compact()
    assert table.to_arrow().sort_by("id").to_pylist() == rows.to_pylist()
    assert read_with_pypaimon(tmp_path, IDENTIFIER, tmp_path).sort_by("id").to_pylist() == rows.to_pylist()
