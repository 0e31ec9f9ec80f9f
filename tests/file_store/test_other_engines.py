"""Our tables read by independent programs, and vice versa; every row is compared."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from storage_lib.io.environment import system_environment
from storage_lib.io.local.local_file_io import LocalFileIO
from storage_lib.schema.filter.column_reference import col
from storage_lib.schema.table_schema import TableSchema, new_table_schema
from storage_lib.schema.types.row_kind import RowKind
from storage_lib.schema.types.type_spelling import parse_type
from tests.support.other_readers import (
    append_with_pypaimon,
    append_with_rust,
    create_with_pypaimon,
    needs_pypaimon,
    read_with_pypaimon,
    read_with_rust,
)
from tests.support.stored_table import Rows, StoredTable

IDENTIFIER = "db.t"


def moment(*parts: int) -> dt.datetime:
    """Return a TIMESTAMP, which has no time zone."""
    return dt.datetime(*parts, tzinfo=dt.UTC).replace(tzinfo=None)  # type: ignore[misc,arg-type]


SCALARS: dict[str, list[Any]] = {
    "BOOLEAN": [True, False, None],
    "TINYINT": [-128, 127, None],
    "SMALLINT": [-32768, 32767, None],
    "INT": [-(2**31), 2**31 - 1, None],
    "BIGINT": [-(2**63), 2**63 - 1, None],
    "FLOAT": [-1.5, 3.25, None],
    "DOUBLE": [-1e300, 2.5, None],
    "DATE": [dt.date(1900, 1, 1), dt.date(2024, 5, 14), None],
    "STRING": ["", "héllo wörld ☃, longer than sixteen", None],
    "CHAR(5)": ["abcde", "fghij", None],
    "VARCHAR(20)": ["x", "a longer piece of it", None],
    "BYTES": [b"", b"\x00\xff" * 20, None],
    "DECIMAL(9, 2)": [Decimal("-1234567.89"), Decimal("0.01"), None],
    "DECIMAL(18, 4)": [Decimal("-12345678901234.5678"), Decimal("0.0001"), None],
    "DECIMAL(38, 10)": [Decimal("-1234567890123456789012345678.0123456789"), Decimal(1), None],
    "TIMESTAMP(3)": [moment(1969, 12, 31, 23, 59, 59, 999000), moment(2024, 5, 14, 1, 2, 3, 456000), None],
    "TIMESTAMP(6)": [moment(1900, 1, 1, 0, 0, 0, 1), moment(2024, 5, 14, 1, 2, 3, 456789), None],
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": [
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
        dt.datetime(2024, 5, 14, 1, 2, 3, 456789, tzinfo=dt.UTC),
        None,
    ],
}

KEYS: dict[str, list[Any]] = {
    spelled: [value for value in values if value is not None] for spelled, values in SCALARS.items()
}


def schema_of(
    columns: dict[str, str],
    keys: list[str],
    partitions: list[str] | None = None,
    options: dict[str, str] | None = None,
) -> TableSchema:
    return new_table_schema(
        [(name, parse_type(spelled)) for name, spelled in columns.items()],
        primary_keys=keys,
        partition_keys=partitions or [],
        options={"bucket": "3", "partition.legacy-name": "false", **(options or {})},
        time_millis=0,
    )


def on_disk(schema: TableSchema, warehouse: Path) -> StoredTable:
    environment = system_environment(LocalFileIO(durable=False))
    return StoredTable(schema, environment, root=f"{warehouse}/db.db/t")


def tuples(rows: pa.Table, names: list[str]) -> list[tuple[Any, ...]]:
    return sorted((tuple(row[name] for name in names) for row in rows.to_pylist()), key=repr)


def assert_read_alike(table: StoredTable, warehouse: Path, scratch: Path) -> None:
    names = [field.name for field in table.schema.fields]
    ours = [tuple(normal(value) for value in row) for row in table.rows()]
    rust = [tuple(normal(value) for value in row) for row in tuples(read_with_rust(warehouse, IDENTIFIER), names)]
    assert sorted(rust, key=repr) == sorted(ours, key=repr)
    theirs = tuples(read_with_pypaimon(warehouse, IDENTIFIER, scratch), names)
    assert sorted((tuple(normal(value) for value in row) for row in theirs), key=repr) == sorted(ours, key=repr)


def normal(value: Any) -> Any:
    """Normalise a timestamp with time zone to UTC."""
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC)
    return value


@needs_pypaimon
@pytest.mark.integration
def test_every_scalar_type_is_read_back(tmp_path: Path) -> None:
    columns = {"id": "INT", **{f"c{index}": spelled for index, spelled in enumerate(SCALARS)}}
    table = on_disk(schema_of(columns, ["id"]), tmp_path)
    rows = [(index, *(values[index] for values in SCALARS.values())) for index in range(3)]
    table.append(rows[:2])
    table.append(rows[1:])
    assert table.rows() == sorted(rows, key=repr)
    assert_read_alike(table, tmp_path, tmp_path)
    table.compact()
    assert_read_alike(table, tmp_path, tmp_path)


@needs_pypaimon
@pytest.mark.integration
def test_every_scalar_type_serves_as_key_and_lands_in_the_bucket_where_others_look(tmp_path: Path) -> None:
    for index, (spelled, values) in enumerate(KEYS.items()):
        warehouse = tmp_path / str(index)
        table = on_disk(schema_of({"k": spelled, "v": "INT"}, ["k"]), warehouse)
        table.append([(value, 0) for value in values])
        table.append([(values[0], 1)])
        ours = table.rows()
        rust = tuples(read_with_rust(warehouse, IDENTIFIER), ["k", "v"])
        assert [(normal(k), v) for k, v in rust] == [(normal(k), v) for k, v in ours], spelled
        assert sorted(v for _, v in ours) == [0] * (len(values) - 1) + [1], spelled


@needs_pypaimon
@pytest.mark.integration
def test_a_life_of_updates_deletes_compactions_and_overwrites_is_read_back(tmp_path: Path) -> None:
    schema = schema_of({"dt": "DATE", "id": "BIGINT", "v": "STRING"}, ["dt", "id"], ["dt"])
    table = on_disk(schema, tmp_path)
    days = [dt.date(2024, 5, 14), dt.date(1969, 7, 20)]
    random = np.random.default_rng(7)
    for round_ in range(6):
        rows = [(days[n % 2], int(random.integers(0, 40)), f"v{round_}-{n}") for n in range(30)]
        kinds = [RowKind.DELETE if random.random() < 0.3 else RowKind.UPDATE_AFTER for _ in rows]
        table.append(rows, kinds)
        if round_ == 2:
            table.compact(full=False)
        if round_ == 4:
            table.compact()
    assert_read_alike(table, tmp_path, tmp_path)
    table.overwrite([(days[0], 1, "reprocessed")], partition_filter=col("dt") == days[0])
    assert_read_alike(table, tmp_path, tmp_path)
    table.store.expire.expire(retain_max=1)
    assert_read_alike(table, tmp_path, tmp_path)


@needs_pypaimon
@pytest.mark.integration
def test_commits_without_rows_are_no_obstacle(tmp_path: Path) -> None:
    table = on_disk(schema_of({"id": "BIGINT", "v": "STRING"}, ["id"]), tmp_path)
    table.commit([], properties={"dynamic-table.log.offsets": '{"0": 3}'})
    assert read_with_rust(tmp_path, IDENTIFIER).num_rows == 0
    assert read_with_pypaimon(tmp_path, IDENTIFIER, tmp_path).num_rows == 0
    table.append([(1, "x")])
    table.commit([])
    assert_read_alike(table, tmp_path, tmp_path)
    table.overwrite([])
    assert read_with_rust(tmp_path, IDENTIFIER).num_rows == 0
    assert read_with_pypaimon(tmp_path, IDENTIFIER, tmp_path).num_rows == 0


@needs_pypaimon
@pytest.mark.integration
def test_partitions_of_every_spelling_are_found(tmp_path: Path) -> None:
    columns = {"s": "STRING", "i": "INT", "b": "BOOLEAN", "d": "DATE", "id": "INT", "v": "STRING"}
    keys = ["s", "i", "b", "d", "id"]
    rows: Rows = [
        ("a b/c", 7, True, dt.date(2024, 5, 14), 1, "x"),
        ("50%=#:?*", -7, False, dt.date(1969, 7, 20), 2, "y"),
        ("", 0, True, dt.date(1970, 1, 1), 3, "z"),
        (" ", 0, True, dt.date(1970, 1, 1), 3, "w"),
    ]
    for legacy in ("true", "false"):
        warehouse = tmp_path / legacy
        warehouse.mkdir()
        table = on_disk(schema_of(columns, keys, ["s", "i", "b", "d"], {"partition.legacy-name": legacy}), warehouse)
        table.append(rows)
        assert table.rows() == sorted(rows, key=repr)
        assert_read_alike(table, warehouse, tmp_path)


@needs_pypaimon
@pytest.mark.integration
def test_a_reader_that_prunes_finds_what_it_looks_for(tmp_path: Path) -> None:
    """Other readers rely on our statistics, partition bounds and buckets, so these must be correct for them as well."""
    table = on_disk(schema_of({"dt": "STRING", "id": "BIGINT", "v": "STRING"}, ["dt", "id"], ["dt"]), tmp_path)
    for day in range(4):
        table.append([(f"2024-05-{day:02d}", n, f"value number {day * 100 + n}") for n in range(50)])
    table.compact()
    table.append([("2024-05-02", 7, "changed")])
    for filters, expected in (
        (("equal", "dt", "2024-05-03"), 50),
        (("equal", "id", 7), 4),
        (("equal", "v", "value number 142"), 1),
        (("equal", "v", "value number 207"), 0),
        (("equal", "v", "changed"), 1),
    ):
        read = read_with_pypaimon(tmp_path, IDENTIFIER, tmp_path, filters)
        assert read.num_rows == expected, filters


@needs_pypaimon
@pytest.mark.integration
def test_with_many_commits_the_folded_manifests_are_read_by_others(tmp_path: Path) -> None:
    options = {"manifest.merge-min-count": "4"}
    table = on_disk(schema_of({"id": "BIGINT", "v": "STRING"}, ["id"], options=options), tmp_path)
    for n in range(25):
        table.append([(n % 10, f"v{n}")])
        if n % 8 == 7:
            table.compact()
    assert_read_alike(table, tmp_path, tmp_path)


@needs_pypaimon
@pytest.mark.integration
def test_a_table_of_pypaimon_is_read_and_written_on(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "dt": pa.array(["a", "a", "b"]),
            "id": pa.array([1, 2, 3], pa.int64()),
            "v": pa.array(["x", "y", None]),
            "n": pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(10, 2)),
        }
    )
    create_with_pypaimon(
        tmp_path, IDENTIFIER, tmp_path, rows, primary_keys=["dt", "id"], partition_keys=["dt"], options={"bucket": "2"}
    )
    theirs = tmp_path / "db.db" / "t"
    schema = TableSchema.from_json((theirs / "schema" / "schema-0").read_bytes())
    table = on_disk(schema, tmp_path)
    assert table.rows() == tuples(rows, ["dt", "id", "v", "n"])

    table.append([("a", 1, "ours", None), ("c", 9, "new", Decimal("3.00"))])
    append_with_pypaimon(tmp_path, IDENTIFIER, tmp_path, rows.slice(1, 1).set_column(2, "v", pa.array(["theirs"])))
    append_with_rust(tmp_path, IDENTIFIER, rows.slice(2, 1).set_column(2, "v", pa.array(["rust's"])))
    expected = [
        ("a", 1, "ours", None),
        ("a", 2, "theirs", None),
        ("b", 3, "rust's", Decimal("-2.25")),
        ("c", 9, "new", Decimal("3.00")),
    ]
    assert table.rows() == expected
    assert_read_alike(table, tmp_path, tmp_path)
    table.compact()
    assert table.rows() == expected
    assert_read_alike(table, tmp_path, tmp_path)
    assert table.store.snapshots.earliest_id() == 1


@pytest.mark.integration
def test_commits_of_rust_and_ours_alternate(tmp_path: Path) -> None:
    table = on_disk(schema_of({"id": "BIGINT", "v": "STRING"}, ["id"]), tmp_path)
    for n in range(6):
        if n % 2:
            append_with_rust(
                tmp_path,
                IDENTIFIER,
                pa.table(table.batch([(0, f"rust {n}"), (n, "rust")]).to_pydict(), table.schema.arrow_schema),
            )
        else:
            table.append([(0, f"ours {n}"), (n, "ours")])
    assert [row[1] for row in table.rows()] == ["rust 5", "rust", "ours", "rust", "ours", "rust"]
    assert tuples(read_with_rust(tmp_path, IDENTIFIER), ["id", "v"]) == table.rows()
