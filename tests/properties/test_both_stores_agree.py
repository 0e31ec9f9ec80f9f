"""For rows of any type and columns of any name, the files and the log hold the same rows."""

from __future__ import annotations

import os

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from storage_lib import DynamicTable, StreamPosition
from storage_lib.io.environment import Environment
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.log_store.memory.memory_log_store import MemoryLogStore
from storage_lib.schema.evolution.schema_history import SchemaHistory
from storage_lib.schema.options.table_options import TableOptions
from storage_lib.schema.table_schema import TableSchema, new_table_schema
from storage_lib.schema.types.data_types import parse_data_type
from tests.support.every_type import EVERY_TYPE, arrays, same_rows, tables
from tests.support.fake_environment import fake_environment

_OF_ANY_LENGTH = [each for each in EVERY_TYPE if each not in {"CHAR(3)", "BINARY(3)"} and "(9)" not in each]
_KEYS = ["INT", "BIGINT", "STRING", "DATE", "DECIMAL(10, 2)", "TIMESTAMP(3)", "TIMESTAMP(6)", "BOOLEAN"]


def _table(schema: TableSchema, *, changelog_mode: str = "upsert") -> DynamicTable:
    environment: Environment = fake_environment()
    name = f"db.t{os.urandom(8).hex()}"
    options = TableOptions.parse({"bucket": "1", "log.changelog-mode": changelog_mode})
    log = MemoryLogStore(schema, name, name, environment.clock, changelog_mode=options.log_changelog_mode)
    log.create()
    SchemaHistory(environment.file_io, TablePaths(name)).append(schema)
    return DynamicTable(
        name=name,
        uuid=name,
        location=name,
        address=None,
        environment=environment,
        schema=schema,
        options=options,
        log=log,
    )


def _final_rows(changes: pa.Table, key: str) -> pa.RecordBatch:
    """Return the rows that remain when the changes are applied in order, sorted by key."""
    newest: dict[object, int] = {}
    kinds = changes.column("_row_kind").to_pylist()
    for index, value in enumerate(_keys(changes, key)):
        if kinds[index] in ("+I", "+U"):
            newest[value] = index
        else:
            newest.pop(value, None)
    return _sorted(changes.drop_columns(["_row_kind"]).take(pa.array(sorted(newest.values()), pa.int64())), key)


def _sorted(rows: pa.Table, key: str) -> pa.RecordBatch:
    values = _keys(rows, key)
    order = sorted(range(rows.num_rows), key=lambda index: values[index])  # type: ignore[arg-type, return-value]
    taken = rows.take(pa.array(order, pa.int64())).combine_chunks()
    columns = [column.combine_chunks() for column in taken.columns]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _keys(rows: pa.Table, key: str) -> list[object]:
    column = rows.column(key)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    values: list[object] = column.to_pylist()
    return values


def _changes(table: DynamicTable) -> pa.Table:
    source = table.stream(position=StreamPosition(snapshot_id=0, offsets=LogOffsets()))
    batch = source.poll()
    return source.arrow_schema.empty_table() if batch is None else batch


def _assert_both_stores_agree(table: DynamicTable, key: str) -> None:
    in_files = _sorted(table.to_arrow(), key)
    in_log = _final_rows(_changes(table), key)
    assert same_rows(in_files, in_log)


@given(drawn=tables(_OF_ANY_LENGTH), data=st.data())
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
def test_rows_of_every_type_are_the_same_in_both_stores(
    drawn: tuple[TableSchema, pa.RecordBatch], data: st.DataObject
) -> None:
    schema, rows = drawn
    table = _table(schema)
    table.append(rows)
    _assert_both_stores_agree(table, "id")

    replacement = [rows.column(0), *(data.draw(arrays(field.type, len(rows))) for field in schema.fields[1:])]
    table.overwrite(pa.RecordBatch.from_arrays(replacement, schema=schema.arrow_schema), partition={})
    _assert_both_stores_agree(table, "id")
    table.compact()
    _assert_both_stores_agree(table, "id")
    table.overwrite(schema.arrow_schema.empty_table(), partition={})
    assert table.to_arrow().num_rows == 0
    _assert_both_stores_agree(table, "id")


@given(key_type=st.sampled_from(_KEYS), is_partition=st.booleans(), data=st.data())
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
def test_keys_and_partitions_of_every_type_are_the_same_in_both_stores(
    key_type: str,
    is_partition: bool,  # noqa: FBT001
    data: st.DataObject,
) -> None:
    columns = [("k", parse_data_type(key_type)), ("id", parse_data_type("INT")), ("v", parse_data_type("STRING"))]
    schema = new_table_schema(
        columns,
        primary_keys=("k", "id"),
        partition_keys=("k",) if is_partition else (),
        options={"bucket": "1"},
        time_millis=0,
    )
    keys = data.draw(arrays(schema.field("k").type, 4))
    rows = pa.RecordBatch.from_arrays(
        [keys, pa.array([0, 1, 2, 3], pa.int32()), pa.array(["a", "b", None, ""])], schema=schema.arrow_schema
    )
    table = _table(schema)
    table.append(rows)
    table.append(rows.slice(1, 2))
    _assert_both_stores_agree(table, "id")
    table.overwrite(rows.slice(2))
    table.compact()
    _assert_both_stores_agree(table, "id")
