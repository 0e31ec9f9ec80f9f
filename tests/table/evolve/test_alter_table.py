"""ALTER TABLE: older files under new schemas, other writers, time travel, the log, and refused changes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from storage_lib import InvalidInputError, MemoryCatalog, WarehouseCatalog, col
from storage_lib.schema.evolution.schema_changes import (
    AddColumn,
    AlterType,
    DropColumn,
    MoveColumn,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetComment,
    SetNullable,
    SetOption,
)
from storage_lib.table.dynamic_table import DynamicTable

COLUMNS = {
    "dt": "DATE",
    "id": "INT",
    "v": "INT",
    "price": "DECIMAL(6, 2)",
    "name": "STRING",
    "r": "ROW<a INT, b STRING>",
    "l": "ARRAY<ROW<x INT>>",
}
DAY = dt.date(2024, 5, 14)
EARLY = dt.datetime(1969, 1, 1, 1, 1, 1, 1000)  # noqa: DTZ001  a TIMESTAMP has no zone


def make_table(columns: dict[str, str] | None = None, options: dict[str, str] | None = None) -> DynamicTable:
    catalog = MemoryCatalog({"log.system": "none"})
    keys = [name for name in ("dt", "id") if name in (columns or COLUMNS)]
    return catalog.create_table("db.t", columns or COLUMNS, primary_key=keys, partition_by=keys[:-1], options=options)


def put(table: DynamicTable, *rows: dict[str, Any]) -> None:
    table.append(pa.Table.from_pylist(list(rows), schema=table.arrow_schema))


def rows_of(table: DynamicTable, **more: Any) -> list[dict[str, Any]]:
    return sorted(table.to_arrow(**more).to_pylist(), key=repr)


@pytest.fixture
def table() -> DynamicTable:
    table = make_table()
    first = {"v": 7, "price": Decimal("1.50"), "name": "one", "r": {"a": 1, "b": "x"}, "l": [{"x": 1}, None]}
    put(table, {"dt": DAY, "id": 1, **first}, {"dt": DAY, "id": 2, "v": -7})
    return table


def test_older_rows_are_seen_under_the_new_schema_before_and_after_compaction(table: DynamicTable) -> None:
    altered = table.alter(
        AddColumn("note", "STRING", after="id", comment="what else"),
        RenameColumn("v", "value"),
        AlterType("value", "BIGINT"),
        AlterType("price", "DECIMAL(12, 4)"),
        DropColumn("name"),
        MoveColumn("value", first=True),
        AddColumn("r.c", "DOUBLE", first=True),
        RenameColumn("r.a", "aa"),
        DropColumn("r.b"),
        AlterType("l.element.x", "BIGINT"),
        AddColumn("l.element.y", "INT"),
    )

    assert altered.arrow_schema.names == ["value", "dt", "id", "note", "price", "r", "l"]
    expected = [
        {"value": -7, "dt": DAY, "id": 2, "note": None, "price": None, "r": None, "l": None},
        {
            "value": 7,
            "dt": DAY,
            "id": 1,
            "note": None,
            "price": Decimal("1.5000"),
            "r": {"c": None, "aa": 1},
            "l": [{"x": 1, "y": None}, None],
        },
    ]
    assert rows_of(altered) == expected
    put(altered, {"dt": DAY, "id": 2, "value": 2**40, "note": "new"})
    expected[0].update(value=2**40, note="new")
    assert rows_of(altered) == sorted(expected, key=repr)
    altered.compact()
    assert rows_of(altered) == sorted(expected, key=repr)
    assert altered.inspect.files()["schema_id"].to_pylist() == [1]


@pytest.mark.parametrize("planned_first", [True, False])
def test_a_table_opened_before_a_column_was_added_keeps_its_values_when_it_compacts(
    table: DynamicTable, *, planned_first: bool
) -> None:
    put(table, {"dt": DAY, "id": 2, "v": 8})
    tasks = table.maintenance.plan_compaction() if planned_first else []
    altered = table.alter(AddColumn("note", "STRING"))
    put(altered, {"dt": DAY, "id": 3, "v": 9, "note": "new"})
    before = rows_of(altered)

    if planned_first:
        table.maintenance.compact_planned(tasks)
    else:
        table.compact()

    assert rows_of(altered) == before
    assert altered.schema.id in altered.inspect.files()["schema_id"].to_pylist()
    compacted = max(altered.inspect.files().to_pylist(), key=lambda file: file["level"])
    assert (compacted["schema_id"], compacted["record_count"]) == (altered.schema.id, 2 if planned_first else 3)


def test_ids_are_for_life_and_never_used_again(table: DynamicTable) -> None:
    highest = table.schema.highest_field_id

    altered = table.alter(DropColumn("l"), AddColumn("m", "ROW<p INT, q INT>"), DropColumn("m")).alter(
        AddColumn("l", "INT")
    )

    assert altered.schema.field("l").id == highest + 4
    assert altered.schema.id == 2
    assert altered.schema.field("v").id == table.schema.field("v").id


def test_a_dropped_columns_values_and_bounds_are_not_taken_for_those_of_a_new_one_of_its_name(
    table: DynamicTable,
) -> None:
    altered = table.alter(DropColumn("v")).alter(AddColumn("v", "INT"))
    put(altered, {"dt": DAY, "id": 3, "v": 100})

    assert rows_of(altered, columns=["id", "v"], filter=col("v") == 7) == []
    assert [row["id"] for row in rows_of(altered, filter=col("v").is_null())] == [1, 2]
    assert [row["id"] for row in rows_of(altered, filter=col("v") == 100)] == [3]


@pytest.mark.parametrize(
    ("old", "new", "value", "wide"),
    [
        ("TINYINT", "INT", 7, 7),
        ("INT", "BIGINT", -7, -7),
        ("INT", "DOUBLE", 7, 7.0),
        ("INT", "DECIMAL(12, 2)", 7, Decimal("7.00")),
        ("FLOAT", "DOUBLE", 0.1, 0.10000000149011612),
        ("DECIMAL(6, 2)", "DECIMAL(30, 4)", Decimal("-1.50"), Decimal("-1.5000")),
        ("VARCHAR(5)", "STRING", "hello", "hello"),
        ("CHAR(5)", "VARCHAR(9)", "hello", "hello"),
        ("BINARY(3)", "BYTES", b"abc", b"abc"),
        (
            "TIMESTAMP(3)",
            "TIMESTAMP(6)",
            EARLY,
            EARLY,
        ),
    ],
)
def test_widened_values_are_found_by_filters_that_prune(old: str, new: str, value: Any, wide: Any) -> None:
    table = make_table({"id": "INT", "c": old})
    put(table, {"id": 1, "c": value})
    put(table, {"id": 2, "c": None})

    altered = table.alter(AlterType("c", new))

    assert rows_of(altered, filter=col("c") == wide) == [{"id": 1, "c": wide}]
    assert rows_of(altered, filter=col("c") != wide) == []
    assert [row["id"] for row in rows_of(altered, filter=col("c").is_null())] == [2]


def test_bounds_of_renamed_and_widened_columns_still_prune() -> None:
    table = make_table({"id": "INT", "c": "INT"})
    put(table, {"id": 1, "c": 5})
    put(table, {"id": 100, "c": 50})

    altered = table.alter(RenameColumn("c", "d"), AlterType("d", "BIGINT"), AddColumn("e", "INT"))

    assert len(altered.new_read(filter=col("d") > 20).plan().entries) == 1
    assert len(altered.new_read(filter=col("e") == 1).plan().entries) == 0
    assert len(altered.new_read(filter=col("e").is_null()).plan().entries) == 2


def test_a_writer_that_knows_an_older_schema_goes_on_and_loses_nothing(table: DynamicTable) -> None:
    altered = table.alter(AddColumn("note", "STRING"), RenameColumn("v", "value"))
    put(altered, {"dt": DAY, "id": 5, "note": "kept", "value": 5})

    put(table, {"dt": DAY, "id": 6, "v": 6})
    assert [row["v"] for row in rows_of(table, filter=col("id") > 4)] == [5, 6]
    table.compact()

    assert [(row["note"], row["value"]) for row in rows_of(altered, filter=col("id") > 4)] == [("kept", 5), (None, 6)]
    assert table.refresh().schema == altered.schema
    assert altered.refresh() is altered


def test_a_value_that_an_older_schema_can_not_hold_is_refused_and_not_cut(table: DynamicTable) -> None:
    put(table.alter(AlterType("v", "BIGINT")), {"dt": DAY, "id": 3, "v": 2**40})

    with pytest.raises(InvalidInputError, match=r"'v' of .* newer schema 1 .*load the table again"):
        rows_of(table)


def test_time_travel_shows_the_schema_of_its_time(table: DynamicTable) -> None:
    altered = table.alter(RenameColumn("v", "value"), DropColumn("name"))
    put(altered, {"dt": DAY, "id": 3, "value": 3})

    assert rows_of(altered, snapshot_id=1, columns=["id", "v", "name"]) == [
        {"id": 1, "v": 7, "name": "one"},
        {"id": 2, "v": -7, "name": None},
    ]
    assert rows_of(table, snapshot_id=2, columns=["id", "value"], filter=col("value") == 3) == [{"id": 3, "value": 3}]


def test_a_race_is_applied_to_what_the_other_made(table: DynamicTable) -> None:
    table.alter(AddColumn("x", "INT"))

    altered = table.alter(AddColumn("y", "INT"))

    assert altered.arrow_schema.names[-2:] == ["x", "y"]
    with pytest.raises(InvalidInputError, match=r"table db.t: column 'x' is there already"):
        table.alter(AddColumn("x", "INT"))


def test_a_renamed_key_stays_the_key(table: DynamicTable) -> None:
    altered = table.alter(RenameColumn("id", "number"))
    put(altered, {"dt": DAY, "number": 1, "v": 70})

    assert altered.schema.primary_keys == ("dt", "number")
    assert rows_of(altered, columns=["v"], filter=col("number") == 1) == [{"v": 70}]


def test_comments_and_options_are_changed_and_nothing_else(table: DynamicTable) -> None:
    altered = table.alter(SetComment("orders"), SetComment("euros", "price"), SetOption("write-buffer-size", "1 mb"))

    assert (altered.schema.comment, altered.schema.field("price").description) == ("orders", "euros")
    assert altered.options.write_buffer_size_bytes == 1 << 20
    again = altered.alter(RemoveOption("write-buffer-size"))
    assert again.options.write_buffer_size_bytes == 256 << 20
    assert again.alter() is again


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (AddColumn("x", "INT NOT NULL"), r"'x' is INT NOT NULL.*make it nullable"),
        (AddColumn("V", "INT"), r"differ in case only"),
        (AddColumn("x", "INT", after="nothing"), r"no column 'nothing' to put 'x' behind"),
        (AddColumn("r.a", "INT"), r"'r.a' is there already"),
        (AddColumn("_row_kind", "INT"), r"reserved"),
        (AddColumn("at", "TIMESTAMP(9)"), r"'at' is TIMESTAMP\(9\).*declare it TIMESTAMP\(6\)"),
        (SetOption("metadata.stats-mode", "none"), r"stats-mode=none is not supported by this version yet"),
        (DropColumn("id"), r"'id' is part of the primary key, so it can't be dropped"),
        (DropColumn("nothing"), r"no column 'nothing'; there are dt, id"),
        (DropColumn("r.x"), r"no column 'x'"),
        (DropColumn("l.element"), r"'l.element' is a part of ARRAY"),
        (RenameColumn("dt", "day"), r"'dt' is a partition column, so it can't be renamed"),
        (RenameColumn("v", "name"), r"'name' is there already"),
        (AlterType("id", "BIGINT"), r"'id' is part of the primary key"),
        (AlterType("v", "SMALLINT"), r"'v' is INT, of which SMALLINT does not hold every value"),
        (AlterType("price", "DECIMAL(6, 3)"), r"DECIMAL\(6, 3\) does not hold"),
        (AlterType("r", "STRING"), r"'r' is ROW"),
        (SetNullable("id"), r"'id' is part of the primary key"),
        (SetNullable("v", nullable=False), r"'v' may hold nulls already"),
        (SetOption("bucket", "7"), r"option bucket was fixed when the table was created"),
        (SetOption("merge-engine", "first-row"), r"option merge-engine was fixed"),
        (SetOption("log.system", "kafka"), r"option log.system was fixed"),
        (SetOption("write-buffer-size", "lots"), r"write-buffer-size"),
        (SetOption("fs.secret", "x"), r"is a secret"),
        (SetOption("file.format", "csv"), r"file.format=csv is not supported.*orc"),
        (SetOption("file.compression", "rar"), r"file.compression=rar is not known to parquet"),
        (RemoveOption("partition.legacy-name"), r"was fixed"),
        (MoveColumn("v"), r"first=True, or after="),
    ],
)
def test_what_can_not_be_is_refused_and_nothing_is_written(
    table: DynamicTable, change: SchemaChange, told: str
) -> None:
    with pytest.raises(InvalidInputError, match=told):
        table.alter(SetComment("half"), change)

    assert table.refresh() is table


def test_a_log_bears_new_columns_and_refuses_what_its_records_can_not_tell() -> None:
    catalog = MemoryCatalog()
    schema = pa.schema([("id", pa.int32()), ("v", pa.int32()), ("at", pa.timestamp("ms"))])
    table = catalog.create_table("db.t", schema, primary_key=["id"])
    put(table, {"id": 1, "v": 1})
    stream = table.stream()
    assert stream.poll() is not None
    altered = catalog.alter_table("db.t", [AddColumn("x", "STRING"), AlterType("v", "BIGINT"), DropColumn("at")])
    put(altered, {"id": 2, "v": 2**40, "x": "new"})
    put(table, {"id": 3, "v": 3})

    changes = altered.stream(position=stream.position).poll()
    assert changes is not None
    seen = sorted((row["id"], row["v"], row["x"]) for row in changes.to_pylist())
    assert seen == [(2, 2**40, "new"), (3, 3, None)]
    for change, told in (
        (RenameColumn("v", "w"), "can't be renamed to 'w': the records in the log"),
        (AddColumn("at", "INT"), "can't be added: the records in the log still have"),
        (AlterType("v", "DECIMAL(20, 0)"), "can't become DECIMAL"),
    ):
        with pytest.raises(InvalidInputError, match=told):
            altered.alter(change)


def test_other_processes_load_the_version_they_are_told(tmp_path: Path) -> None:
    catalog = WarehouseCatalog(str(tmp_path), {"log.system": "none"})
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64()), ("v", pa.int64())]), primary_key=["id"])
    table.alter(RenameColumn("v", "w"))

    assert catalog.load_table("db.t").arrow_schema.names == ["id", "w"]
    assert catalog.load_table("db.t").refresh(schema_id=0).arrow_schema.names == ["id", "v"]
