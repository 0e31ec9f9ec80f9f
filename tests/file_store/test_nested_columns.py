"""Nested columns through the file store: written, merged, compacted, projected, and described in manifests."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings

from storage_lib import AddColumn, MemoryCatalog, col
from storage_lib.schema.table_schema import TableSchema
from storage_lib.schema.types.row_kind import RowKind
from tests.support.fake_environment import fake_environment
from tests.support.nested_values import tables
from tests.support.schemas import schema_of
from tests.support.stored_table import StoredTable

COLUMNS = "id BIGINT, tags ARRAY<STRING>, prices MAP<STRING, DECIMAL(10, 2)>, r ROW<a INT, `b.c` ARRAY<INT>>, v INT"


def _table() -> StoredTable:
    return StoredTable(schema_of(COLUMNS, key="id"), fake_environment())


def _row(key: int, length: int) -> tuple[object, ...]:
    tags = [f"t{n}" if n % 3 else None for n in range(length)]
    return (key, tags, [("p", None)], {"a": key, "b.c": list(range(length))}, length)


def test_versions_of_a_key_are_merged_whatever_their_length() -> None:
    table = _table()
    table.append([_row(n, 3) for n in range(10)])
    table.append([_row(n, n) for n in range(0, 10, 2)])
    table.append([(5, None, None, None, None)])
    table.append([_row(7, 0)], [RowKind.DELETE])
    expected = sorted(
        [_row(n, n if n % 2 == 0 else 3) for n in range(10) if n not in (5, 7)] + [(5, None, None, None, None)],
        key=repr,
    )

    assert table.rows() == expected
    table.compact()
    assert table.rows() == expected
    assert table.rows(columns=["r", "v"], predicate=col("v") == 2) == [({"a": 2, "b.c": [0, 1]}, 2)]
    assert table.rows(columns=["id"], predicate=col("tags").is_null()) == [(5,)]


def test_manifests_have_no_bounds_of_nested_columns() -> None:
    table = _table()
    table.append([_row(n, 2) for n in range(3)])

    (entry,) = table.store.scan.plan(table.store.snapshots.latest()).entries

    assert entry.file.value_stats_cols == ("id", "v")
    assert entry.file.value_stats.min_values[:4] == (2).to_bytes(4, "big")


def test_every_part_of_a_column_has_its_field_id_in_the_file() -> None:
    table = StoredTable(schema_of("id BIGINT, m MAP<STRING, ARRAY<ROW<x INT>>>", key="id"), fake_environment())
    table.append([(1, [("k", [{"x": 1}])])])
    (split,) = table.store.scan.plan(table.store.snapshots.latest()).splits()
    path = table.paths.data_file_path("", 0, split.files[0].file_name)

    with table.environment.file_io.open_input(path) as source:
        schema = pq.ParquetFile(source).schema_arrow

    column = schema.field("m")
    key, value = column.type.key_field, column.type.item_field
    element = value.type.value_field
    ids = [each.metadata[b"PARQUET:field_id"] for each in (column, key, value, element, element.type.field(0))]
    base = 536_870_911
    assert ids == [str(n).encode() for n in (1, base - 1024 - 1, base + 1024 + 1, base + 1024 + 2, 2)]


def test_a_column_named_as_a_path_is_not_taken_for_the_nested_one() -> None:
    table = StoredTable(schema_of("id BIGINT, r ROW<a INT>, `r.a` INT", key="id"), fake_environment())
    table.append([(1, {"a": 100}, 7), (2, {"a": 200}, 8)])

    assert table.rows(columns=["id"], predicate=col("r.a") == 8) == [(2,)]
    assert table.rows(columns=["r.a"], predicate=col("r.a") > 50) == []


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(tables())
def test_whatever_is_written_is_read_back(drawn: tuple[TableSchema, pa.RecordBatch]) -> None:
    schema, rows = drawn
    catalog = MemoryCatalog({"log.system": "none"})
    table = catalog.create_table("db.t", schema.arrow_schema, primary_key=["id"])
    table.append(rows)
    table.append(rows.slice(0, rows.num_rows // 2))

    assert table.to_arrow().sort_by("id").to_pylist() == rows.to_pylist()
    table.compact()
    assert table.to_arrow().sort_by("id").to_pylist() == rows.to_pylist()


def test_decimals_inside_of_nothing_but_nulls_are_written() -> None:
    # Given: files that lack the column, which is filled with Arrow's array of nulls; the empty child of such an array
    # has a buffer that is not a multiple of a decimal's 16 bytes.
    catalog = MemoryCatalog({"log.system": "none"}, environment=fake_environment())
    table = catalog.create_table("shop.orders", {"id": "INT"}, primary_key=["id"], options={"file.format": "avro"})
    for number in (1, 2):
        table.append(pa.table({"id": pa.array([number], pa.int32())}))

    table = table.alter(AddColumn("items", "ARRAY<ROW<price DECIMAL(5, 2)>>"))
    table.compact()

    assert sorted(row["id"] for row in table.to_arrow().to_pylist()) == [1, 2]
    assert table.to_arrow()["items"].to_pylist() == [None, None]
