"""Permitted default values of columns, and the parsing of their text."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal

import pytest

from storage_lib.errors import InvalidInputError
from storage_lib.schema.evolution.alter_schema import alter_schema
from storage_lib.schema.evolution.schema_changes import RemoveOption, RenameColumn, SetOption
from storage_lib.schema.options.default_values import default_scalar, with_declared_defaults
from storage_lib.schema.table_schema import TableSchema, new_table_schema
from storage_lib.schema.types.data_field import DataField
from storage_lib.schema.types.type_spelling import parse_type


def schema(options: Mapping[str, str], columns: str = "id INT NOT NULL, v INT, s STRING") -> TableSchema:
    made = new_table_schema(columns, primary_keys=["id"], options={"bucket": "1", **options}, time_millis=0)
    return with_declared_defaults(made, {})


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("BOOLEAN", "Yes", True),
        ("TINYINT", "-5", -5),
        ("BIGINT", " 7 ", 7),
        ("DOUBLE", "3.5", 3.5),
        ("DECIMAL(5, 2)", "1.005", Decimal("1.01")),
        ("STRING", "my value", "my value"),
        ("STRING", "'quoted'", "quoted"),
        ("STRING", "", ""),
        ("VARCHAR(3)", "abcde", "abc"),
        ("CHAR(4)", "ab", "ab  "),
        ("BYTES", "ab", b"ab"),
        ("DATE", "2024-05-14", dt.date(2024, 5, 14)),
        ("TIME(0)", "01:02:03", dt.time(1, 2, 3)),
        ("TIMESTAMP(3)", "2024-05-14 01:02:03.5", dt.datetime(2024, 5, 14, 1, 2, 3, 500000)),  # noqa: DTZ001  has no zone
    ],
)
def test_a_text_is_a_value_of_the_columns_type(type_: str, text: str, value: object) -> None:
    scalar = default_scalar(DataField(id=0, name="v", type=parse_type(type_)), text)
    assert scalar.as_py() == value
    assert scalar.type == parse_type(type_).arrow


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        ("TINYINT", "300"),
        ("INT", "five"),
        ("BOOLEAN", "perhaps"),
        ("DATE", "tomorrow"),
        ("DECIMAL(3, 1)", "12345"),
        ("ARRAY<INT>", "[1]"),
        ("TIMESTAMP_LTZ(3)", "2024-05-14 01:02:03"),
    ],
)
def test_a_text_that_is_no_value_of_the_columns_type_is_refused(type_: str, text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"column 'v' can't be read as .*fields\.v\.default-value"):
        schema({"fields.v.default-value": text}, f"id INT, v {type_}")


def test_the_option_is_the_columns_default_in_the_schema_file() -> None:
    made = schema({"fields.v.default-value": "5"})
    assert [each.default_value for each in TableSchema.from_json(made.to_json()).fields] == [None, "5", None]


def test_an_alteration_sets_changes_and_takes_away_a_default() -> None:
    made = alter_schema(schema({}), [SetOption("fields.v.default-value", "5")], time_millis=1)
    assert made.field("v").default_value == "5"
    changed = alter_schema(made, [SetOption("fields.v.default-value", "6")], time_millis=2)
    assert changed.field("v").default_value == "6"
    renamed = alter_schema(changed, [RenameColumn("v", "w")], time_millis=3)
    assert renamed.field("w").default_value == "6"
    gone = alter_schema(renamed, [RemoveOption("fields.w.default-value")], time_millis=4)
    assert gone.field("w").default_value is None
    with pytest.raises(InvalidInputError, match="'x' of column 'w'"):
        alter_schema(renamed, [SetOption("fields.w.default-value", "x")], time_millis=5)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"fields.id.default-value": "5"}, "part of the primary key"),
        ({"fields.w.default-value": "5"}, "no column 'w'"),
        ({"fields.v.default-value": "5", "merge-engine": "partial-update"}, "merge-engine=partial-update"),
    ],
)
def test_a_column_that_has_no_default_is_refused(options: Mapping[str, str], match: str) -> None:
    with pytest.raises(InvalidInputError, match=match):
        schema(options)
