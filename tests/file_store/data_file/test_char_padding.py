"""CHAR(n) in ORC files of Paimon's Java core, which pads values with spaces: read as by that core."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from storage_lib import WarehouseCatalog, col
from storage_lib.schema.table_schema import new_table_schema
from tests.support.paimon_core import PaimonCore

pytestmark = pytest.mark.integration

COLUMNS = {
    "id": "BIGINT",
    "c": "CHAR(5)",
    "l": "ARRAY<CHAR(3)>",
    "m": "MAP<CHAR(3), CHAR(2)>",
    "r": "ROW<a CHAR(4), b STRING>",
    "v": "VARCHAR(5)",
}
ROWS = [
    (1, "ab", ["a", None, "abc"], [("k", "v"), ("kk", None)], {"a": "x", "b": "y "}, "ab "),
    (2, None, None, None, None, None),
    (3, "abcde", [], [], {"a": None, "b": None}, ""),
    (4, "", [""], [("", "")], {"a": "", "b": ""}, " "),
]


@pytest.fixture(scope="module")
def java() -> Iterator[PaimonCore]:
    with PaimonCore() as core:
        yield core


@pytest.mark.parametrize("format_", ["orc", "parquet", "avro"])
def test_a_char_is_read_as_paimons_java_core_reads_it(java: PaimonCore, tmp_path: Path, format_: str) -> None:
    options = {"bucket": "1", "file.format": format_}
    schema = new_table_schema(list(COLUMNS.items()), primary_keys=["id"], options=options, time_millis=0)
    java.create(tmp_path, "db.t", schema)
    java.write(tmp_path, "db.t", ROWS, schema)
    table = WarehouseCatalog(str(tmp_path)).load_table("db.t")
    assert [tuple(each.values()) for each in table.to_arrow().to_pylist()] == java.read(tmp_path, "db.t", schema)
    assert table.to_arrow(columns=["id"], filter=col("c") == "ab").to_pylist() == [{"id": 1}]


@pytest.mark.parametrize("format_", ["orc", "parquet"])
def test_a_char_in_the_key_is_one_key_whoever_wrote_it(java: PaimonCore, tmp_path: Path, format_: str) -> None:
    options = {"bucket": "2", "file.format": format_}
    schema = new_table_schema("k CHAR(5), n INT", primary_keys=["k"], options=options, time_millis=0)
    java.create(tmp_path, "db.t", schema)
    java.write(tmp_path, "db.t", [("ab", 1), ("abc", 1), ("b", 1)], schema)
    table = WarehouseCatalog(str(tmp_path)).load_table("db.t")
    table.append(pa.table({"k": ["ab", "c"], "n": pa.array([2, 2], pa.int32())}))
    expected: list[Any] = [("ab", 2), ("abc", 1), ("b", 1), ("c", 2)]
    assert sorted(tuple(each.values()) for each in table.to_arrow().to_pylist()) == expected
    assert sorted(java.read(tmp_path, "db.t", schema)) == expected
    table.compact()
    assert sorted(java.read(tmp_path, "db.t", schema)) == expected
