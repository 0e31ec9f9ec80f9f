"""Types of new and widened columns."""

from __future__ import annotations

import itertools
import random

import pytest

from storage_lib.log_store.conversion.capture_modes import CaptureModes
from storage_lib.log_store.conversion.captured_value_type import (
    BOOLEAN,
    BYTES,
    DOUBLE,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    TEXT,
    Meaning,
    Spelling,
    ValueType,
    row_of,
)
from storage_lib.log_store.conversion.captured_values import is_convertible
from storage_lib.log_store.conversion.connect_schema import value_type
from storage_lib.log_store.conversion.new_column_type import table_type
from storage_lib.log_store.conversion.semantic_types import decimal_of
from storage_lib.log_store.conversion.widened_type import widened
from storage_lib.schema.evolution.type_widening import holds_every_value
from storage_lib.schema.types.type_spelling import parse_type
from tests.support.debezium_values import Modes, a_source

MODES = CaptureModes()
DATE = ValueType(meaning=Meaning.DATE)
MICROS = ValueType(meaning=Meaning.TIMESTAMP, unit="us")
ZONED = ValueType(meaning=Meaning.INSTANT, spelling=Spelling.TEXT)


def decimal(precision: int | None, scale: int) -> ValueType:
    return decimal_of(scale, precision, "decimal")


@pytest.mark.parametrize(
    ("stored", "written", "expected"),
    [
        ("INT", INT64, "BIGINT"),
        ("BIGINT", INT32, "BIGINT"),
        ("BIGINT NOT NULL", INT32, "BIGINT NOT NULL"),
        ("INT NOT NULL", INT64, "BIGINT NOT NULL"),
        ("SMALLINT", FLOAT, "FLOAT"),
        ("INT", FLOAT, "DOUBLE"),
        ("FLOAT", INT32, "DOUBLE"),
        ("FLOAT", DOUBLE, "DOUBLE"),
        ("BIGINT", DOUBLE, "BIGINT"),
        ("DECIMAL(10, 2)", decimal(8, 4), "DECIMAL(12, 4)"),
        ("DECIMAL(10, 2)", decimal(9, 2), "DECIMAL(10, 2)"),
        ("INT", decimal(10, 2), "DECIMAL(12, 2)"),
        ("DECIMAL(10, 2)", INT64, "DECIMAL(21, 2)"),
        ("DECIMAL(38, 0)", decimal(38, 10), "DECIMAL(38, 0)"),
        ("DECIMAL(10, 2)", TEXT, "DECIMAL(10, 2)"),
        ("VARCHAR(10)", TEXT, "STRING"),
        ("STRING", INT32, "STRING"),
        ("STRING", ZONED, "STRING"),
        ("TIMESTAMP(3)", MICROS, "TIMESTAMP(6)"),
        ("TIMESTAMP(9)", MICROS, "TIMESTAMP(9)"),
        ("BOOLEAN", INT16, "BOOLEAN"),
        ("DATE", MICROS, None),
        ("TIMESTAMP(6)", ZONED, None),
        ("INT", BOOLEAN, None),
        ("STRING", BYTES, None),
        ("INT", ValueType(meaning=Meaning.ARRAY, element=INT32), None),
        ("ARRAY<INT>", ValueType(meaning=Meaning.ARRAY, element=INT32), "ARRAY<INT>"),
    ],
)
def test_a_column_is_widened_to_hold_what_is_stored_and_written(
    stored: str, written: ValueType, expected: str | None
) -> None:
    found = widened(parse_type(stored), written, MODES)

    assert found == (None if expected is None else parse_type(expected))


def test_every_widened_type_holds_the_stored_values_and_takes_the_written_ones() -> None:
    chance = random.Random(5)  # noqa: S311  reproducible
    modes = [Modes.draw(chance) for _ in range(30)]
    written = [INT8, *(value_type(a_source(chance, each).form(each).schema) for each in modes)]
    stored = [table_type(each) for each in written]

    found = [(old, new, widened(old, new, MODES)) for old, new in itertools.product(stored, written)]

    for old, new, wide in found:
        if wide is None:
            assert not is_convertible(new, old, MODES), (str(old), str(new))
        else:
            assert holds_every_value(wide, old), (str(old), str(new), str(wide))
            assert is_convertible(new, wide, MODES), (str(old), str(new), str(wide))
    assert sum(wide is None for *_, wide in found) > 100
    assert sum(wide not in {None, old} for old, _, wide in found) > 5


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
