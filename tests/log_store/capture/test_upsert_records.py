"""Topics with the newest row of each key, as Flink writes them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest

from storage_lib.log_store.capture.captured_changes import CapturedChanges
from storage_lib.log_store.capture.upsert_record_decoder import UpsertRecordDecoder
from storage_lib.schema.table_schema import TableSchema, new_table_schema
from storage_lib.schema.types.type_spelling import parse_type
from tests.support.captured_records import captured, captured_table

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string()), pa.field("n", pa.int32(), nullable=False)])
SCHEMA = new_table_schema(COLUMNS, primary_keys=("id",), options={"bucket": "1"}, time_millis=0)


def schema_of(columns: dict[str, str]) -> TableSchema:
    typed = [(name, parse_type(spelling)) for name, spelling in columns.items()]
    return new_table_schema(typed, primary_keys=("key",), options={"bucket": "1"}, time_millis=0)


def decoded(schema: TableSchema, values: pa.Array, keys: pa.Array) -> CapturedChanges:
    return captured(UpsertRecordDecoder(table=captured_table(schema)), values, keys)


def binary(*values: str | None) -> pa.Array:
    return pa.array([None if value is None else value.encode() for value in values], pa.binary())


def test_a_value_is_the_row_of_its_key_and_none_deletes_it() -> None:
    changes = decoded(
        SCHEMA,
        binary('{"id":1,"name":"a","n":1,"more":[]}', None, ' {"n": 3,\n"name": null}'),
        binary('{"id":1}', '{"id":2}', '{"id":3}'),
    )

    assert changes.rows.to_pylist() == [
        {"id": 1, "name": "a", "n": 1},
        {"id": 2, "name": None, "n": None},
        {"id": 3, "name": None, "n": 3},
    ]
    assert changes.kinds.to_pylist() == [0, 3, 0]
    assert changes.record_indices.tolist() == [0, 1, 2]


def test_the_value_says_the_key_and_the_key_what_the_value_lacks() -> None:
    changes = decoded(
        SCHEMA,
        binary('{"id":1,"n":1}', '{"id":5,"n":2}', '{"n":3}', None),
        binary("{}", '{"id":6}', '{"id":7}', '{"id":8}'),
    )

    assert changes.rows.column("id").to_pylist() == [1, 5, 7, 8]


def test_every_type_is_spelled_as_flink_does() -> None:
    columns = {
        "key": "INT",
        "b": "BOOLEAN",
        "f": "DOUBLE",
        "price": "DECIMAL(10, 2)",
        "raw": "BYTES",
        "d": "DATE",
        "t": "TIME(3)",
        "at": "TIMESTAMP(6)",
        "zoned": "TIMESTAMP_LTZ(3)",
    }
    schema = schema_of(columns)
    value = (
        '{"key":1,"b":true,"f":1.5,"price":12.3,"raw":"AP8=","d":"2024-05-14","t":"01:02:03.5",'
        '"at":"2024-05-14 01:02:03.000004","zoned":"2024-05-14T01:02:03.123Z"}'
    )

    rows = decoded(schema, binary(value, '{"key":2}'), binary('{"key":1}', '{"key":2}')).rows.to_pylist()

    assert rows[0] == {
        "key": 1,
        "b": True,
        "f": 1.5,
        "price": Decimal("12.30"),
        "raw": b"\x00\xff",
        "d": date(2024, 5, 14),
        "t": time(1, 2, 3, 500_000),
        "at": datetime(2024, 5, 14, 1, 2, 3, 4),  # noqa: DTZ001  it has none
        "zoned": datetime(2024, 5, 14, 1, 2, 3, 123_000, UTC),
    }
    assert set(rows[1].values()) == {2, None}


def test_nested_columns_hold_what_their_leaves_spell() -> None:
    schema = schema_of(
        {
            "key": "INT",
            "tags": "ARRAY<STRING>",
            "item": "ROW<price DECIMAL(10, 2), at TIMESTAMP(3), raw BYTES>",
            "items": "ARRAY<ROW<d DATE, n INT>>",
            "prices": "MAP<STRING, DECIMAL(10, 2)>",
            "days": "MAP<STRING, ROW<d DATE, sizes ARRAY<DOUBLE>>>",
            "bag": "MULTISET<STRING>",
        }
    )
    value = (
        '{"key":1,"tags":["a",null],"item":{"price":12.3,"at":"2024-05-14 01:02:03.5","raw":"AP8=","more":1},'
        '"items":[{"d":"2024-05-14","n":1},null,{"n":2}],"prices":{"a":0.1,"b":7},'
        '"days":{"x":{"d":"2024-05-14","sizes":[1.5,2]}},"bag":{"b":2}}'
    )
    empty = '{"key":2,"tags":[],"item":null,"items":null,"prices":{},"days":null}'

    changes = decoded(schema, binary(value, empty, None), binary('{"key":1}', '{"key":2}', '{"key":3}'))

    full, bare, gone = changes.rows.to_pylist()
    assert full == {
        "key": 1,
        "tags": ["a", None],
        "item": {"price": Decimal("12.30"), "at": datetime(2024, 5, 14, 1, 2, 3, 500_000), "raw": b"\x00\xff"},  # noqa: DTZ001
        "items": [{"d": date(2024, 5, 14), "n": 1}, None, {"d": None, "n": 2}],
        "prices": [("a", Decimal("0.10")), ("b", Decimal("7.00"))],
        "days": [("x", {"d": date(2024, 5, 14), "sizes": [1.5, 2.0]})],
        "bag": [("b", 2)],
    }
    assert bare == {"key": 2, "tags": [], "item": None, "items": None, "prices": [], "days": None, "bag": None}
    assert gone == dict.fromkeys(schema.arrow_schema.names) | {"key": 3}


def test_numbers_that_are_none_are_words_as_jackson_writes_them() -> None:
    schema = schema_of({"key": "INT", "f": "DOUBLE", "sizes": "ARRAY<FLOAT>", "note": "STRING"})
    value = '{"key":1,"f":"-Infinity","sizes":["NaN",0.5],"note":"NaN"}'

    row = decoded(schema, binary(value, '{"key":2,"f":2.5}'), binary("{}", "{}")).rows.to_pylist()

    assert repr(row[0]) == "{'key': 1, 'f': -inf, 'sizes': [nan, 0.5], 'note': 'NaN'}"
    assert row[1]["f"] == 2.5


def test_a_map_that_is_none_is_named() -> None:
    schema = schema_of({"key": "INT", "prices": "MAP<STRING, INT>"})

    changes = decoded(schema, binary('{"key":1,"prices":{"a":1}}', '{"key":2,"prices":3}'), binary("{}", "{}"))

    assert changes.record_indices.tolist() == [0]
    assert [(each.record_index, "prices" in each.reason) for each in changes.refusals] == [(1, True)]


@pytest.mark.parametrize(
    ("value", "key", "complaint"),
    [
        ("[]", '{"id":1}', "not a JSON object"),
        ('{"n":1}', None, "neither key nor value has a value for the primary key (id)"),
        (None, None, "neither key nor value has a value for the primary key (id)"),
        (None, '{"other":1}', "neither key nor value"),
        ('{"id":"x","n":1}', '{"id":1}', "id"),
    ],
)
def test_a_record_that_is_no_row_is_refused_and_the_others_are_not(
    value: str | None, key: str | None, complaint: str
) -> None:
    changes = decoded(
        SCHEMA, binary('{"id":1,"n":1}', None, value, '{"id":4,"n":4}'), binary('{"id":1}', '{"id":2}', key, None)
    )

    assert changes.record_indices.tolist() == [0, 1, 3]
    (refusal,) = changes.refusals
    assert refusal.record_index == 2
    assert complaint in refusal.reason
