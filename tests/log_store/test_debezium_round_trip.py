"""Every value that a table can hold survives a round trip through the log."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage_lib.log_store.codec.debezium_json import DebeziumJson
from storage_lib.schema.options.table_options import ChangelogMode
from storage_lib.schema.table_schema import TableSchema
from storage_lib.schema.types.row_kind import RowKind
from tests.support.every_type import EVERY_TYPE, same_rows, tables

PATIENT = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("declared", EVERY_TYPE)
@given(st.data())
@settings(PATIENT, max_examples=25)
def test_every_type_survives_the_log(declared: str, data: st.DataObject) -> None:
    schema, rows = data.draw(tables([declared]))

    assert_round_trip(schema, rows, pa.array([RowKind.INSERT] * len(rows), pa.int8()), ChangelogMode.UPSERT)


@given(tables(), st.data())
@settings(PATIENT, max_examples=100)
def test_every_mix_of_kinds_survives_the_log(table: tuple[TableSchema, pa.RecordBatch], data: st.DataObject) -> None:
    schema, rows = table
    kinds = data.draw(st.lists(st.sampled_from([0, 2, 3]), min_size=len(rows), max_size=len(rows)))

    assert_round_trip(schema, rows, pa.array(kinds, pa.int8()), ChangelogMode.UPSERT)


@given(tables())
@settings(PATIENT, max_examples=50)
def test_updates_survive_the_log_with_their_row_before(table: tuple[TableSchema, pa.RecordBatch]) -> None:
    schema, rows = table
    if not len(rows):
        return
    # Duplicate each row: -U and +U of one key.
    doubled = rows.take(pa.array([index // 2 for index in range(2 * len(rows))]))
    kinds = pa.array([1, 2] * len(rows), pa.int8())

    assert_round_trip(schema, doubled, kinds, ChangelogMode.ALL)


def assert_round_trip(schema: TableSchema, rows: pa.RecordBatch, kinds: pa.Array, mode: ChangelogMode) -> None:
    codec = DebeziumJson.for_table(schema, mode)
    parts = list(codec.encode(rows, kinds))
    values = pa.concat_arrays([part.values for part in parts]) if parts else pa.nulls(0, pa.binary())
    for value in values.to_pylist():
        assert set(json.loads(value)) == {"before", "after", "op"}
        assert b"\n" not in value

    found = codec.decode(values)

    assert found.kinds == kinds
    assert same_rows(found.rows, rows)
