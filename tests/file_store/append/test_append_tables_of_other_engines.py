"""Our append tables read by independent programs, and vice versa; every row is compared."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

from storage_lib.io.environment import system_environment
from storage_lib.io.local.local_file_io import LocalFileIO
from storage_lib.schema.filter.column_reference import col
from storage_lib.schema.table_schema import TableSchema
from tests.file_store.test_other_engines import SCALARS, assert_read_alike, tuples
from tests.support.append_tables import append_schema
from tests.support.other_readers import (
    append_with_pypaimon,
    append_with_rust,
    create_with_pypaimon,
    needs_pypaimon,
    read_with_pypaimon,
)
from tests.support.stored_table import StoredTable

IDENTIFIER = "db.t"

pytestmark = [needs_pypaimon, pytest.mark.integration]


def on_disk(schema: TableSchema, warehouse: Path) -> StoredTable:
    return StoredTable(schema, system_environment(LocalFileIO(durable=False)), root=f"{warehouse}/db.db/t")


def test_every_scalar_type_is_read_back_before_and_after_compaction(tmp_path: Path) -> None:
    columns = "; ".join(f"c{index} {spelled}" for index, spelled in enumerate(SCALARS))
    table = on_disk(append_schema(columns=columns, partition_keys=[]), tmp_path)
    rows = [tuple(values[index] for values in SCALARS.values()) for index in range(3)]
    table.append(rows[:2])
    table.append(rows[1:])
    assert len(table.rows()) == 4
    assert_read_alike(table, tmp_path, tmp_path)
    table.compact()
    assert_read_alike(table, tmp_path, tmp_path)


def test_partitions_also_those_of_no_value_are_read_back(tmp_path: Path) -> None:
    table = on_disk(append_schema(columns="d DATE; dt STRING; id BIGINT", partition_keys=["d", "dt"]), tmp_path)
    table.append([(dt.date(2024, 5, 14), "a", 1), (None, None, 2), (None, "b", 3), (dt.date(1969, 7, 20), None, 4)])
    table.append([(dt.date(2024, 5, 14), "a", 5), (None, None, 6)])
    assert_read_alike(table, tmp_path, tmp_path)
    table.compact()
    assert_read_alike(table, tmp_path, tmp_path)
    table.overwrite([(None, "b", 7)], partition_filter=col("dt") == "b")
    table.store.expire.expire(retain_max=1)
    assert_read_alike(table, tmp_path, tmp_path)


def test_a_reader_that_prunes_finds_what_it_looks_for_in_buckets_too(tmp_path: Path) -> None:
    for options in ({}, {"bucket": "3", "bucket-key": "id"}):
        warehouse = tmp_path / str(len(options))
        table = on_disk(append_schema(options), warehouse)
        for day in range(3):
            table.append([(f"2024-05-{day:02d}", n, f"value number {day * 100 + n}") for n in range(50)])
        table.compact()
        table.append([("2024-05-02", 7, "again")])
        for filters, expected in ((("equal", "id", 7), 4), (("equal", "item", "value number 142"), 1)):
            assert read_with_pypaimon(warehouse, IDENTIFIER, tmp_path, filters).num_rows == expected, filters


@pytest.mark.parametrize("options", [{}, {"bucket": "2", "bucket-key": "id"}], ids=["unaware", "bucketed"])
def test_a_table_of_pypaimon_is_read_appended_to_and_compacted_in_turns(
    tmp_path: Path, options: dict[str, str]
) -> None:
    rows = pa.table({"dt": ["a", "a", "b"], "id": pa.array([1, 2, 3], pa.int64()), "item": ["x", None, "z"]})
    create_with_pypaimon(tmp_path, IDENTIFIER, tmp_path, rows, primary_keys=[], partition_keys=["dt"], options=options)
    schema = TableSchema.from_json((tmp_path / "db.db" / "t" / "schema" / "schema-0").read_bytes())
    table = on_disk(schema, tmp_path)
    expected = tuples(rows, ["dt", "id", "item"])
    assert table.rows() == expected

    table.append([("a", 4, "ours"), ("c", 5, None)])
    append_with_pypaimon(tmp_path, IDENTIFIER, tmp_path, rows.slice(1, 2))
    append_with_rust(tmp_path, IDENTIFIER, rows.slice(0, 1))
    expected = sorted([*expected, *expected[:1], *expected[1:], ("a", 4, "ours"), ("c", 5, None)], key=repr)
    assert table.rows() == expected
    assert_read_alike(table, tmp_path, tmp_path)
    table.compact()
    append_with_pypaimon(tmp_path, IDENTIFIER, tmp_path, rows.slice(0, 1))
    assert table.rows() == sorted([*expected, ("a", 1, "x")], key=repr)
    assert_read_alike(table, tmp_path, tmp_path)
