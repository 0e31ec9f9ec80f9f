"""Topics of the newest row of each key, as Flink writes them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.log_codec import CorruptRecordError
from storage_lib.log_store.upsert_json import UpsertJson
from storage_lib.schema.table_schema import new_table_schema

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string()), pa.field("n", pa.int32(), nullable=False)])
SCHEMA = new_table_schema(COLUMNS, primary_keys=("id",), options={"bucket": "1"}, time_millis=0)


def binary(*values: str | None) -> pa.Array:
    return pa.array([None if value is None else value.encode() for value in values], pa.binary())


def test_a_value_is_the_row_of_its_key_and_none_deletes_it() -> None:
    changes = UpsertJson(SCHEMA).decode(
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
    from storage_lib.schema.type_spelling import parse_type

    typed = [(name, parse_type(spelling)) for name, spelling in columns.items()]
    schema = new_table_schema(typed, primary_keys=("key",), options={"bucket": "1"}, time_millis=0)
    value = (
        '{"key":1,"b":true,"f":1.5,"price":12.3,"raw":"AP8=","d":"2024-05-14","t":"01:02:03.5",'
        '"at":"2024-05-14 01:02:03.000004","zoned":"2024-05-14T01:02:03.123Z"}'
    )

    rows = UpsertJson(schema).decode(binary(value, '{"key":2}'), binary('{"key":1}', '{"key":2}')).rows.to_pylist()

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


@pytest.mark.parametrize(
    ("value", "key", "complaint"),
    [
        ('{"id":1}', '{"id":1}', "'n' is null or missing"),
        ("[]", '{"id":1}', "not a JSON object"),
        ('{"n":1}', None, "without a key"),
        (None, None, "without a key"),
        (None, '{"other":1}', "neither key nor value has column 'id'"),
        ('{"id":"x","n":1}', '{"id":1}', "id"),
    ],
)
def test_the_first_record_that_is_no_row_is_named(value: str | None, key: str | None, complaint: str) -> None:
    with pytest.raises(CorruptRecordError, match=complaint) as refused:
        UpsertJson(SCHEMA).decode(binary('{"id":1,"n":1}', None, value), binary('{"id":1}', '{"id":2}', key))

    assert refused.value.index == 2


def test_a_table_that_such_a_topic_can_not_fill_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="needs a table with a primary key"):
        UpsertJson(new_table_schema(COLUMNS, options={"bucket": "1"}, time_millis=0))
    nested = pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.string()))])
    with pytest.raises(InvalidInputError, match="'tags' is ARRAY"):
        UpsertJson(new_table_schema(nested, primary_keys=("id",), options={"bucket": "1"}, time_millis=0))
