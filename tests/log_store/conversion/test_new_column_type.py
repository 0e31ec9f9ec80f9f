"""Types of new columns."""

from __future__ import annotations

import pytest

from storage_lib.log_store.conversion.captured_value_type import (
    DOUBLE,
    TEXT,
    Meaning,
    Spelling,
    ValueType,
    row_of,
)
from storage_lib.log_store.conversion.new_column_type import table_type
from storage_lib.log_store.conversion.semantic_types import decimal_of
from storage_lib.schema.types.type_spelling import parse_type

DATE = ValueType(meaning=Meaning.DATE)
ZONED = ValueType(meaning=Meaning.INSTANT, spelling=Spelling.TEXT)


def decimal(precision: int | None, scale: int) -> ValueType:
    return decimal_of(scale, precision, "decimal")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (decimal(10, 2), "DECIMAL(10, 2)"),
        (decimal(None, 2), "DECIMAL(38, 2)"),
        (decimal(50, 2), "STRING"),
        (decimal(3, -2), "STRING"),
        (ValueType(meaning=Meaning.DECIMAL, spelling=Spelling.SCALED), "STRING"),
        (ValueType(meaning=Meaning.TIME, unit="us"), "TIME(3)"),
        (ValueType(meaning=Meaning.MAP, key=TEXT, element=DATE), "MAP<STRING NOT NULL, DATE>"),
    ],
)
def test_a_new_column_loses_nothing(written: ValueType, expected: str) -> None:
    assert table_type(written) == parse_type(expected)


def test_a_new_row_column_has_the_fields_of_the_record() -> None:
    assert str(table_type(row_of({"x": DOUBLE, "at": ZONED}))) == "ROW<x DOUBLE, at TIMESTAMP(6) WITH LOCAL TIME ZONE>"
