"""ARRAY, MAP, MULTISET and ROW: their spellings, ids and Arrow types."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given

from storage_lib.errors import InvalidInputError
from storage_lib.schema.table_schema import TableSchema
from storage_lib.schema.types.data_types import DataType
from storage_lib.schema.types.nested_types import column_type_of_arrow, leaves_of, with_new_ids
from storage_lib.schema.types.type_spelling import parse_type, type_from_json, type_to_json
from tests.support.nested_values import types
from tests.support.schemas import schema_of

OF_PAIMON = [
    {"id": 9, "name": "l", "type": {"type": "ARRAY", "element": "STRING", "nullable": True}},
    {"id": 10, "name": "m", "type": {"type": "MAP", "key": "STRING NOT NULL", "value": "INT"}},
    {"id": 14, "name": "s", "type": {"type": "MULTISET NOT NULL", "element": "INT"}},
    {
        "id": 11,
        "name": "r",
        "type": {
            "type": "ROW",
            "fields": [
                {"id": 12, "name": "a", "type": "INT"},
                {"id": 13, "name": "b", "type": {"type": "ARRAY NOT NULL", "element": "STRING NOT NULL"}},
            ],
        },
    },
]


def test_fields_of_rows_get_their_ids_right_after_the_row_in_one_space_with_the_columns() -> None:
    schema = schema_of("id INT, r ROW<a INT, b ARRAY<ROW<c INT>>, d STRING>, e INT", key="id")

    written = json.loads(schema.to_json())

    assert [field["id"] for field in written["fields"]] == [0, 1, 6]
    row = written["fields"][1]["type"]
    assert [(field["name"], field["id"]) for field in row["fields"]] == [("a", 2), ("b", 3), ("d", 5)]
    assert row["fields"][1]["type"]["element"]["fields"][0]["id"] == 4
    assert written["highestFieldId"] == 6


def test_the_schema_of_another_writer_is_read_and_written_back_alike() -> None:
    value = json.loads(schema_of("id INT", key="id").to_json())
    value["fields"] += OF_PAIMON

    schema = TableSchema.from_json(json.dumps(value).encode())

    assert [str(field.type) for field in schema.fields[1:]] == [
        "ARRAY<STRING>",
        "MAP<STRING NOT NULL, INT>",
        "MULTISET<INT> NOT NULL",
        "ROW<a INT, b ARRAY<STRING NOT NULL> NOT NULL>",
    ]
    assert TableSchema.from_json(schema.to_json()) == schema


@given(types())
def test_both_spellings_of_a_type_give_it_back(of: DataType) -> None:
    assert parse_type(str(of)) == of
    assert type_from_json(json.loads(json.dumps(type_to_json(of)))) == of
    assert with_new_ids(of, lambda: -1) == of


@given(types())
def test_an_arrow_type_gives_a_type_back_that_makes_it(of: DataType) -> None:
    assert column_type_of_arrow(of.arrow, nullable=of.nullable).arrow == of.arrow


def test_not_null_inside_an_arrow_type_is_kept() -> None:
    element = pa.struct([pa.field("a", pa.int32(), nullable=False)])

    of = column_type_of_arrow(pa.list_(pa.field("item", element, nullable=False)))

    assert str(of) == "ARRAY<ROW<a INT NOT NULL> NOT NULL>"


def test_people_may_write_types_in_many_ways() -> None:
    assert str(parse_type("array < int >")) == "ARRAY<INT>"
    assert str(parse_type("STRUCT<a: INT, `b c`: Map<string, decimal(10,2)> not null>")) == (
        "ROW<a INT, `b c` MAP<STRING, DECIMAL(10, 2)> NOT NULL>"
    )


@pytest.mark.parametrize(
    "text", ["ARRAY<INT", "ARRAY<INT, INT>", "MAP<INT>", "ROW<>", "ROW<a>", "ROW<a INT, a INT>", "LIST<INT>"]
)
def test_what_is_no_type_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError):
        parse_type(text)


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ({"key": "a"}, {}),
        ({"key": "id, a", "partition": "a"}, {}),
        ({"key": ""}, {"bucket_key": "a"}),
    ],
)
def test_nested_columns_are_no_keys(columns: dict[str, str], options: dict[str, str]) -> None:
    with pytest.raises(InvalidInputError, match=r"'a' is ARRAY<INT>.*can't be a"):
        schema_of("id INT, a ARRAY<INT>", **columns, **options)


def test_leaves_are_named_by_their_paths() -> None:
    of = parse_type("ROW<a INT, b ARRAY<MAP<STRING, DATE>>>")

    assert [(path, str(leaf)) for path, leaf in leaves_of(of, "r")] == [
        ("r.a", "INT"),
        ("r.b.element.key", "STRING"),
        ("r.b.element.value", "DATE"),
    ]


def test_every_list_of_arrow_is_an_array() -> None:
    for arrow in (pa.list_(pa.int32()), pa.large_list(pa.int32()), pa.list_(pa.int32(), 3), pa.list_view(pa.int32())):
        assert str(column_type_of_arrow(arrow)) == "ARRAY<INT>"
