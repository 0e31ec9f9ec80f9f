"""Nested columns in the log: encoded as by Kafka Connect, and decoded to equal values."""

from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage_lib import MemoryCatalog
from storage_lib.log_store.codec.debezium_json import DebeziumJson
from storage_lib.log_store.codec.log_codec import CorruptRecordError
from storage_lib.schema.options.table_options import ChangelogMode
from storage_lib.schema.table_schema import TableSchema, new_table_schema
from storage_lib.schema.types.row_kind import RowKind
from storage_lib.schema.types.type_spelling import parse_type
from tests.support.nested_values import tables


def _schema(**columns: str) -> TableSchema:
    typed = [("id", parse_type("BIGINT")), *((name, parse_type(text)) for name, text in columns.items())]
    return new_table_schema(typed, primary_keys=["id"], options={"bucket": "1"}, time_millis=0)


def _encoded(schema: TableSchema, rows: list[dict[str, Any]]) -> list[str]:
    codec = DebeziumJson.for_table(schema, ChangelogMode.UPSERT)
    batch = pa.RecordBatch.from_pylist(rows, schema=schema.arrow_schema)
    kinds = pa.array([RowKind.INSERT] * len(rows), pa.int8())
    return [value.decode() for part in codec.encode(batch, kinds) for value in part.values.to_pylist()]


def _decoded(schema: TableSchema, *after: str) -> list[dict[str, Any]]:
    codec = DebeziumJson.for_table(schema, ChangelogMode.UPSERT)
    values = pa.array([f'{{"before":null,"after":{row},"op":"c"}}'.encode() for row in after])
    return codec.decode(values).rows.to_pylist()


def test_the_spelling_is_that_of_kafka_connect() -> None:
    schema = _schema(
        tags="ARRAY<STRING>",
        place="ROW<city STRING, at ROW<day DATE, price DECIMAL(10, 2)>>",
        counts="MAP<STRING, ARRAY<INT>>",
        by_day="MAP<DATE, DOUBLE>",
        bag="MULTISET<STRING>",
    )
    row = {
        "id": 1,
        "tags": ['a"b', None, ""],
        "place": {"city": "Ulm", "at": {"day": 1, "price": None}},
        "counts": [("x", [1, None]), ("é", None)],
        "by_day": [(0, 1.5), (1, math.nan)],
        "bag": [("t", 2)],
    }
    nothing: dict[str, Any] = {"id": 2, "tags": None, "place": None, "counts": None, "by_day": [], "bag": []}

    first, second = _encoded(schema, [row, nothing])

    assert first == (
        '{"before":null,"after":{"id":1,"tags":["a\\"b",null,""],'
        '"place":{"city":"Ulm","at":{"day":1,"price":null}},'
        '"counts":{"x":[1,null],"é":null},"by_day":[[0,1.5],[1,"NaN"]],"bag":{"t":2}},"op":"c"}'
    )
    assert json.loads(second)["after"] == {
        "id": 2, "tags": None, "place": None, "counts": None, "by_day": [], "bag": {},
    }  # fmt: skip


@given(tables(), st.data())
@settings(deadline=None, max_examples=150)
def test_whatever_is_nested_survives_the_log(table: tuple[TableSchema, pa.RecordBatch], data: st.DataObject) -> None:
    schema, rows = table
    kinds = pa.array(data.draw(st.lists(st.sampled_from([0, 2, 3]), min_size=len(rows), max_size=len(rows))), pa.int8())
    codec = DebeziumJson.for_table(schema, ChangelogMode.UPSERT)
    parts = list(codec.encode(rows, kinds))
    values = pa.concat_arrays([part.values for part in parts]) if parts else pa.nulls(0, pa.binary())

    found = codec.decode(values)

    assert found.kinds == kinds
    assert found.rows.to_pylist() == rows.to_pylist()
    found.rows.validate(full=True)


def test_a_pair_of_before_and_after_keeps_what_is_nested_in_each() -> None:
    schema = _schema(tags="ARRAY<INT>", counts="MAP<STRING, INT>")
    codec = DebeziumJson.for_table(schema, ChangelogMode.ALL)
    rows = [{"id": 1, "tags": [1], "counts": [("a", 1)]}, {"id": 1, "tags": None, "counts": [("b", 2)]}]
    batch = pa.RecordBatch.from_pylist(rows, schema=schema.arrow_schema)

    (part,) = codec.encode(batch, pa.array([RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER], pa.int8()))
    found = codec.decode(part.values)

    assert len(part.values) == 1
    assert found.kinds.to_pylist() == [RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER]
    assert found.rows.to_pylist() == batch.to_pylist()


def test_numbers_that_json_has_no_word_for_survive_inside_a_nested_column() -> None:
    schema = _schema(points="ARRAY<ROW<x DOUBLE, y FLOAT>>", x="DOUBLE")
    points = [{"x": math.inf, "y": -math.inf}, {"x": 1.5, "y": None}]
    rows = [{"id": 1, "points": points, "x": -math.inf}, {"id": 2, "points": [{"x": 0.1, "y": 2.5}], "x": 0.5}]

    encoded = _encoded(schema, rows)

    assert '"points":[{"x":"Infinity","y":"-Infinity"},{"x":1.5,"y":null}]' in encoded[0]
    assert _decoded(schema, *(value[len('{"before":null,"after":') : -len(',"op":"c"}')] for value in encoded)) == rows


def test_fields_that_a_record_lacks_are_null_and_those_the_table_lacks_are_passed_over() -> None:
    schema = _schema(place="ROW<city STRING, zip INT>", counts="MAP<STRING, ROW<n INT>>")

    (found,) = _decoded(schema, '{"id":1,"place":{"city":"Ulm","more":[{}]},"counts":{"a":{"m":1}},"new":{"b":[]}}')

    assert found == {"id": 1, "place": {"city": "Ulm", "zip": None}, "counts": [("a", {"n": None})]}


@pytest.mark.parametrize(
    ("columns", "wrong"),
    [
        ({"c": "ARRAY<INT>"}, '{"a":1}'),
        ({"c": "ROW<a INT>"}, "[1]"),
        ({"c": "MAP<STRING, INT>"}, "3"),
        ({"c": "MAP<STRING, INT>"}, '{"a":"x"}'),
        ({"c": "MAP<STRING, INT>"}, '{"a":99999999999999999999}'),
        ({"c": "MAP<INT, INT>"}, "[[1,2,3]]"),
        ({"c": "MAP<INT, ARRAY<INT>>"}, "[[1,{}]]"),
    ],
)
def test_another_shape_names_the_record(columns: dict[str, str], wrong: str) -> None:
    schema = _schema(**columns)
    codec = DebeziumJson.for_table(schema, ChangelogMode.UPSERT)
    values = [
        '{"before":null,"after":{"id":1,"c":null},"op":"c"}',
        f'{{"before":null,"after":{{"id":2,"c":{wrong}}},"op":"c"}}',
    ]

    with pytest.raises(CorruptRecordError) as caught:
        codec.decode(pa.array([value.encode() for value in values]))

    assert caught.value.index == 1


def test_a_table_with_nested_columns_streams_what_was_written() -> None:
    catalog = MemoryCatalog()
    columns = {"id": "BIGINT", "tags": "ARRAY<STRING>", "counts": "MAP<STRING, INT>", "place": "ROW<city STRING>"}
    table = catalog.create_table("db.t", columns, primary_key=["id"])
    row = {"id": 1, "tags": ["a", None], "counts": [("x", 1)], "place": {"city": "Ulm"}}
    later = {**row, "id": 2, "place": None}
    table.append(pa.Table.from_pylist([row], schema=table.arrow_schema))
    stream = table.stream()
    first = stream.poll()
    table.append(pa.Table.from_pylist([later], schema=table.arrow_schema))
    second = stream.poll()

    assert first is not None
    assert second is not None
    assert [each.drop_columns(["_row_kind"]).to_pylist() for each in (first, second)] == [[row], [later]]
