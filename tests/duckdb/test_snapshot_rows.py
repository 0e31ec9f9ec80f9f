"""DuckDB reads every snapshot of a table as the library does, or refuses it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from storage_lib.duckdb import snapshot_rows
from storage_lib.duckdb.duckdb_session import duckdb_session
from storage_lib.duckdb.snapshot_rows import SnapshotRows
from storage_lib.materialized.algebra import ValueType, read_type
from storage_lib.materialized.engine import EngineRefusalError
from storage_lib.schema.types.data_types import TypeRoot
from storage_lib.table.read import large_runs
from tests.support.evolving_life import KINDS, TYPES, Life, steps_of

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable

READ = {
    TypeRoot.BOOLEAN: "boolean",
    TypeRoot.TINYINT: "tinyint",
    TypeRoot.INTEGER: "int",
    TypeRoot.BIGINT: "bigint",
    TypeRoot.DOUBLE: "double",
    TypeRoot.VARCHAR: "string",
    TypeRoot.DATE: "date",
    TypeRoot.TIMESTAMP: "timestamp_ntz",
    TypeRoot.TIMESTAMP_LTZ: "timestamp",
}
LARGE = 1 << 40


def types_of(table: DynamicTable) -> dict[str, ValueType]:
    """Return the columns that DuckDB is asked for, with their types."""
    found = {}
    for field in table.schema.fields:
        if field.type.root is TypeRoot.DECIMAL:
            found[field.name] = read_type(f"decimal({field.type.precision},{field.type.scale})")
        elif field.type.root in READ:
            found[field.name] = read_type(READ[field.type.root])
    return found


def read_by_duckdb(table: DynamicTable, snapshot_id: int) -> pa.Table:
    columns = types_of(table)
    with duckdb_session(LARGE) as session:
        return session.rows(SnapshotRows(session, table, columns).select(snapshot_id))


def texts_of(rows: pa.Table, schema: pa.Schema) -> list[str]:
    return sorted(map(repr, rows.cast(schema).to_pylist()))


def live(make_table: Callable[..., DynamicTable], seed: int, kind: str, steps: int = 12) -> int:
    """Compare all snapshots of a random life; return how many were read."""
    rng = Random(seed)  # noqa: S311  reproducible
    columns = {"k": "BIGINT NOT NULL", "p": "STRING NOT NULL", **TYPES}
    life = Life(rng=rng, table=make_table(f"life{seed}", columns=columns, **KINDS[kind]), kind=kind, types=dict(TYPES))
    compared = 0
    for step in range(steps):
        rng.choice(steps_of(kind) if step else (Life.append,))(life)
        newest = life.table.inspect.latest_snapshot_id() or 0
        wanted = [field for field in life.table.arrow_schema if field.name in types_of(life.table)]
        schema = pa.schema(wanted)
        for snapshot_id in {newest, rng.randint(1, newest)}:
            read = life.table.new_read(columns=schema.names, snapshot_id=snapshot_id)
            batches = [batch for split in read.splits(read.plan()) for batch in read.read_split(split)]
            expected = pa.Table.from_batches(batches, schema)
            found = read_by_duckdb(life.table, snapshot_id)
            assert texts_of(found, schema) == texts_of(expected, schema), f"seed {seed}, step {step}, {kind}"
            compared += 1
    return compared


@pytest.mark.parametrize("kind", KINDS)
def test_every_snapshot_of_a_random_life_has_the_rows_that_a_read_has(
    make_table: Callable[..., DynamicTable], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(large_runs, "ROWS_PER_NEWER_ROW_MIN", 0)

    assert sum(live(make_table, seed, kind) for seed in range(4)) > 40


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        ("d > 5", [1]),
        ("d >= 0.0", [1, 3, 4]),
        ("d = CAST('nan' AS DOUBLE)", [1]),
        ("NOT (d <= 5)", [1]),
        ("d < CAST('nan' AS DOUBLE)", [2, 3, 4]),
        ("d = 0", [3]),
    ],
)
def test_a_filter_takes_nan_of_a_file_whose_statistics_leave_it_out(
    make_table: Callable[..., DynamicTable], condition: str, ids: list[int]
) -> None:
    table = make_table("t", columns={"k": "BIGINT NOT NULL", "d": "DOUBLE"}, primary_key=("k",))
    values = [math.nan, -1.0, -0.0, 2.0, None]
    table.append([{"k": key, "d": value} for key, value in enumerate(values, 1)])
    table.compact(full=True)

    with duckdb_session(LARGE) as session:
        rows = SnapshotRows(session, table, types_of(table)).select(table.inspect.latest_snapshot_id() or 0)
        found = session.rows(f"SELECT k FROM ({rows}) WHERE {condition}")  # noqa: S608  the texts above

    assert sorted(found["k"].to_pylist()) == ids


def test_the_snapshot_before_the_first_one_has_no_rows(make_table: Callable[..., DynamicTable]) -> None:
    table = make_table("empty", columns={"k": "BIGINT NOT NULL", "v": "DECIMAL(10,2)"}, primary_key=("k",))

    rows = read_by_duckdb(table, 0)

    assert rows.num_rows == 0
    assert rows.schema.types == [pa.int64(), pa.decimal128(10, 2)]


def test_files_that_are_too_large_to_read_or_to_merge_are_refused(
    make_table: Callable[..., DynamicTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table("t", columns={"k": "BIGINT NOT NULL", "v": "INT"}, primary_key=("k",))
    for version in range(2):
        table.append([{"k": 1, "v": version}, {"k": 2, "v": version}])
    rows = types_of(table)

    with duckdb_session(10) as session, pytest.raises(EngineRefusalError, match=r"refresh\.in-process-size-max"):
        SnapshotRows(session, table, rows).select(2)
    monkeypatch.setattr(snapshot_rows, "MERGED_BYTES_MAX", 10)
    with duckdb_session(LARGE) as session, pytest.raises(EngineRefusalError, match="have to be merged"):
        SnapshotRows(session, table, rows).select(2)


def test_a_path_with_the_characters_of_a_pattern_is_read_by_this_process(
    make_table: Callable[..., DynamicTable],
) -> None:
    columns = {"p": "STRING NOT NULL", "v": "INT"}
    table = make_table("t", columns=columns, primary_key=(), partition_by=("p",), write_mode="append-only", bucket=-1)
    rows: list[dict[str, Any]] = [{"p": name, "v": number} for number, name in enumerate(("a*", "[a-z]", "?", "b'c"))]
    table.append(rows)

    assert sorted(read_by_duckdb(table, 1).to_pylist(), key=lambda row: int(row["v"])) == rows


def test_an_expired_file_is_refused(make_table: Callable[..., DynamicTable]) -> None:
    table = make_table("t", columns={"k": "BIGINT NOT NULL", "v": "INT"}, primary_key=("k",))
    table.append([{"k": 1, "v": 1}])
    with duckdb_session(LARGE) as session:
        select = SnapshotRows(session, table, types_of(table)).select(1)
        for file in Path(table.address.warehouse).rglob("data-*.parquet"):
            file.unlink()

        with pytest.raises(EngineRefusalError, match=r"No files found|No such file"):
            session.rows(select)
