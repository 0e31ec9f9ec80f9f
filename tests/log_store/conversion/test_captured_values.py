"""Values by the types that records declare: the cases in which guessing from the column was wrong."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pj
import pytest

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.conversion.assumed_value_type import of_flink, of_modes
from storage_lib.log_store.conversion.capture_modes import CaptureModes
from storage_lib.log_store.conversion.captured_json import holds_float, holds_map, of_parsed, read_type
from storage_lib.log_store.conversion.captured_value_type import ValueType
from storage_lib.log_store.conversion.captured_values import Converted, converted
from storage_lib.log_store.conversion.connect_schema import value_type
from storage_lib.schema.types.data_field import DataField
from storage_lib.schema.types.type_spelling import parse_type

CONNECT, DEBEZIUM = "org.apache.kafka.connect.data.", "io.debezium."


def local(year: int, month: int, day: int, *time_of_day: int) -> datetime:
    hour, minute, second, microsecond = (*time_of_day, 0, 0, 0, 0)[:4]
    return datetime.combine(date(year, month, day), time(hour, minute, second, microsecond))


def field(type_: str) -> DataField:
    return DataField(id=0, name="v", type=parse_type(type_))


def read(values: list[Any], written: ValueType) -> pa.Array:
    if holds_map(written) or holds_float(written):
        return of_parsed([json.loads(json.dumps(each)) for each in values], written)
    lines = "".join(json.dumps({"v": each}) + "\n" for each in values)
    schema = pa.schema([("v", read_type(written))])
    return pj.read_json(pa.BufferReader(lines.encode()), parse_options=pj.ParseOptions(explicit_schema=schema))[
        "v"
    ].combine_chunks()


def of_schema(schema: dict[str, Any], values: list[Any], type_: str, **options: str) -> Converted:
    modes = CaptureModes.parse({key.replace("_", "-").replace("--", "."): value for key, value in options.items()})
    written = value_type(schema)
    return converted(read(values, written), written, field(type_), modes)


def of_mode(values: list[Any], type_: str, **options: str) -> Converted:
    modes = CaptureModes.parse({key.replace("_", "-").replace("--", "."): value for key, value in options.items()})
    written = of_modes(field(type_), modes)
    return converted(read(values, written), written, field(type_), modes)


def named(physical: str, name: str, **parameters: str) -> dict[str, Any]:
    return {"type": physical, "name": name, "parameters": parameters}


@pytest.mark.parametrize(
    ("schema", "value", "type_", "expected"),
    [
        (named("bytes", f"{CONNECT}Decimal", scale="4"), "AXMY", "DECIMAL(10, 2)", Decimal("9.50")),
        ({"type": "string"}, "1234", "DECIMAL(10, 0)", Decimal(1234)),
        ({"type": "string"}, "1234", "BIGINT", 1234),
        ({"type": "double"}, 12.5, "DECIMAL(10, 2)", Decimal("12.50")),
        (named("int64", f"{CONNECT}Timestamp"), 1715688000000, "TIMESTAMP(6)", local(2024, 5, 14, 12)),
        (
            named("int64", f"{CONNECT}Timestamp"),
            1715688000000,
            "TIMESTAMP_LTZ(3)",
            datetime(2024, 5, 14, 12, tzinfo=UTC),
        ),
        (named("int64", f"{DEBEZIUM}time.MicroTime"), 43200123456, "TIME(6)", time(12, 0, 0, 123000)),
        (named("int32", f"{DEBEZIUM}time.Date"), 19857, "DATE", date(2024, 5, 14)),
        (named("string", f"{DEBEZIUM}time.IsoDate"), "2024-05-14Z", "DATE", date(2024, 5, 14)),
        (
            named("string", f"{DEBEZIUM}time.ZonedTimestamp"),
            "2024-05-14T12:00:00.5+02:00",
            "TIMESTAMP_LTZ(6)",
            datetime(2024, 5, 14, 10, 0, 0, 500000, tzinfo=UTC),
        ),
        (named("string", f"{DEBEZIUM}time.ZonedTime"), "10:00:00Z", "STRING", "10:00:00Z"),
        (named("string", f"{DEBEZIUM}time.Interval"), "P1Y2M", "STRING", "P1Y2M"),
        (named("int64", f"{DEBEZIUM}time.MicroDuration"), 5, "BIGINT", 5),
        (named("int32", f"{DEBEZIUM}time.Year"), 2024, "INT", 2024),
        (named("bytes", f"{DEBEZIUM}data.Bits", length="10"), "AQI=", "BYTES", b"\1\2"),
        (named("bytes", f"{DEBEZIUM}data.Bits", length="10"), "AQI=", "BIGINT", 513),
        ({"type": "int16"}, 1, "BOOLEAN", True),
        ({"type": "float"}, "NaN", "FLOAT", "nan"),
        ({"type": "double"}, "-Infinity", "DOUBLE", float("-inf")),
        (
            {"type": "array", "items": named("int32", f"{DEBEZIUM}time.Date")},
            [19857, None],
            "ARRAY<DATE>",
            [date(2024, 5, 14), None],
        ),
        (
            {"type": "map", "keys": {"type": "string"}, "values": {"type": "string"}},
            {"a": "b", "c": None},
            "MAP<STRING, STRING>",
            [("a", "b"), ("c", None)],
        ),
        (
            {
                "type": "struct",
                "name": f"{DEBEZIUM}data.VariableScaleDecimal",
                "fields": [{"type": "int32", "field": "scale"}, {"type": "bytes", "field": "value"}],
            },
            {"scale": 1, "value": "Xw=="},
            "DECIMAL(10, 2)",
            Decimal("9.50"),
        ),
        (
            {
                "type": "struct",
                "name": f"{DEBEZIUM}data.geometry.Point",
                "fields": [
                    {"type": "double", "field": "x"},
                    {"type": "double", "field": "y"},
                    {"type": "bytes", "field": "wkb", "optional": True},
                    {"type": "int32", "field": "srid", "optional": True},
                ],
            },
            {"x": 1.0, "y": 2.0, "wkb": "AQI=", "srid": None},
            "ROW<x DOUBLE, wkb BYTES, more INT>",
            {"x": 1.0, "wkb": b"\1\2", "more": None},
        ),
    ],
)
def test_a_value_is_what_its_schema_says(schema: dict[str, Any], value: Any, type_: str, expected: Any) -> None:
    found = of_schema(schema, [value, None], type_)

    assert found.refusals == ()
    assert found.array.type == parse_type(type_).arrow
    value, null = found.array.to_pylist()
    assert str(value) == "nan" if expected == "nan" else value == expected
    assert null is None


@pytest.mark.parametrize(
    ("schema", "value", "type_", "reason"),
    [
        (
            named("bytes", f"{CONNECT}Decimal", scale="4"),
            "AXMX",
            "DECIMAL(10, 2)",
            "'9.4999' does not fit DECIMAL(10, 2) exactly",
        ),
        (named("bytes", f"{CONNECT}Decimal", scale="0"), "f" * 40, "DECIMAL(38, 0)", "does not fit"),
        ({"type": "string"}, "12 EUR", "DECIMAL(10, 2)", "'12 EUR' is not a decimal number"),
        ({"type": "string"}, "NaN", "DECIMAL(10, 2)", "source.out-of-range=null"),
        ({"type": "double"}, 1e39, "FLOAT", "1e+39 is too large for FLOAT"),
        ({"type": "int32"}, 40000, "SMALLINT", "40000 does not fit SMALLINT"),
        ({"type": "int64"}, 2**53 + 1, "DOUBLE", "does not fit DOUBLE"),
        ({"type": "int16"}, 2, "BOOLEAN", "2 does not fit BOOLEAN"),
        (named("int64", f"{DEBEZIUM}time.MicroTimestamp"), 1, "TIMESTAMP(3)", "source.time-precision=truncate"),
        (named("int64", f"{DEBEZIUM}time.MicroTimestamp"), 9223372036825200000, "TIMESTAMP(6)", "source.out-of-range"),
        (named("string", f"{DEBEZIUM}time.ZonedTimestamp"), "infinity", "TIMESTAMP_LTZ(6)", "source.out-of-range"),
        (
            named("string", f"{DEBEZIUM}time.ZonedTimestamp"),
            "2024-02-30T00:00:00Z",
            "TIMESTAMP_LTZ(6)",
            "is not a date",
        ),
        (named("string", f"{DEBEZIUM}time.ZonedTimestamp"), "2024-02-03T00:00:00", "TIMESTAMP_LTZ(6)", "with its zone"),
        (named("int64", f"{DEBEZIUM}time.MicroTime"), 86_400_000_000, "TIME(6)", "00:00 to 24:00"),
        (named("int64", f"{DEBEZIUM}time.MicroTime"), -1, "TIME(6)", "00:00 to 24:00"),
        (named("int32", f"{DEBEZIUM}time.Date"), 3_000_000, "DATE", "the years 1 to 9999"),
        ({"type": "bytes"}, "not base64!", "BYTES", "is not base64"),
        ({"type": "array", "items": {"type": "int32"}}, [1, 1000], "ARRAY<TINYINT>", "'v.element': 1000"),
        (
            {"type": "map", "keys": {"type": "string"}, "values": {"type": "int32"}},
            {"a": 1000},
            "MAP<STRING, TINYINT>",
            "'v.value': 1000",
        ),
    ],
)
def test_a_value_that_does_not_fit_is_refused_alone(
    schema: dict[str, Any], value: Any, type_: str, reason: str
) -> None:
    found = of_schema(schema, [None, value, None], type_)

    assert found.array.null_count == 3
    assert [each.mask.tolist() for each in found.refusals] == [[False, True, False]]
    assert "'v" in found.refusals[0].reason
    assert reason in found.refusals[0].reason


@pytest.mark.parametrize(
    ("option", "expected"),
    [("null", [None, None]), ("clamp", [local(9999, 12, 31, 23, 59, 59, 999999), local(1, 1, 1)])],
)
def test_infinity_is_null_or_the_last_moment_if_an_option_says_so(option: str, expected: list[Any]) -> None:
    schema = named("int64", f"{DEBEZIUM}time.MicroTimestamp")

    found = of_schema(schema, [9223372036825200000, -9223372036832400000], "TIMESTAMP(6)", source__out_of_range=option)

    assert found.refusals == ()
    assert found.array.to_pylist() == expected


@pytest.mark.parametrize(("option", "expected"), [("auto", 1), ("truncate", 1), ("round", 2), ("reject", None)])
def test_microseconds_of_a_time_are_cut_off_unless_an_option_says_otherwise(option: str, expected: int | None) -> None:
    schema = named("int64", f"{DEBEZIUM}time.MicroTime")

    found = of_schema(schema, [1_500, 86_399_999_999], "TIME(6)", source__time_precision=option)

    assert found.array.cast(pa.int32()).to_pylist() == [expected, None if expected is None else 86_399_999]
    assert len(found.refusals) == (2 if expected is None else 0)


@pytest.mark.parametrize(
    ("mode", "text"), [("hex", "deadbeef"), ("base64", "3q2+7w=="), ("base64-url-safe", "3q2-7w==")]
)
def test_text_of_a_binary_column_needs_the_mode(mode: str, text: str) -> None:
    # when
    found = of_schema({"type": "string"}, [text], "BYTES", debezium__binary_handling_mode=mode)

    # then
    assert found.array.to_pylist() == [b"\xde\xad\xbe\xef"]
    with pytest.raises(InvalidInputError, match=r"debezium\.binary-handling-mode"):
        of_schema({"type": "string"}, [text], "BYTES")


@pytest.mark.parametrize(
    ("schema", "type_"),
    [
        (named("int32", f"{DEBEZIUM}time.Date"), "TIMESTAMP(3)"),
        (named("int64", f"{DEBEZIUM}time.MicroTimestamp"), "TIMESTAMP_LTZ(6)"),
        (named("int64", f"{DEBEZIUM}time.MicroTimestamp"), "BIGINT"),
        (named("string", f"{DEBEZIUM}time.ZonedTimestamp"), "TIMESTAMP(6)"),
        (named("string", f"{DEBEZIUM}data.Json"), "INT"),
        ({"type": "int64"}, "TIMESTAMP(3)"),
        ({"type": "boolean"}, "INT"),
        ({"type": "array", "items": {"type": "int32"}}, "INT"),
        ({"type": "array", "items": {"type": "boolean"}}, "ARRAY<INT>"),
    ],
)
def test_types_that_have_no_value_in_common_are_named(schema: dict[str, Any], type_: str) -> None:
    with pytest.raises(InvalidInputError, match=r"column 'v.*, but the records write it as .*; make the column"):
        of_schema(schema, [None], type_)


def test_without_a_schema_the_modes_say_how_values_are_written() -> None:
    assert of_mode(["A7Y="], "DECIMAL(10, 2)").array.to_pylist() == [Decimal("9.50")]
    string, double = {"debezium__decimal_handling_mode": "string"}, {"debezium__decimal_handling_mode": "double"}
    assert of_mode(["9.5"], "DECIMAL(10, 2)", **string).array.to_pylist() == [Decimal("9.50")]
    assert of_mode([9.5], "DECIMAL(10, 2)", **double).array.to_pylist() == [Decimal("9.50")]
    connect = {"debezium__time_precision_mode": "connect"}
    assert of_mode([1500], "TIMESTAMP(6)", **connect).array.to_pylist() == [local(1970, 1, 1, 0, 0, 1, 500000)]
    assert of_mode([1500], "TIMESTAMP(3)").array.to_pylist() == [local(1970, 1, 1, 0, 0, 1, 500000)]
    iso = {"debezium__time_precision_mode": "isostring"}
    assert of_mode(["12:00:00.5Z"], "TIME(3)", **iso).array.to_pylist() == [time(12, 0, 0, 500000)]


def test_text_that_two_modes_write_is_refused_until_the_mode_is_named() -> None:
    precise = {"debezium__decimal_handling_mode": "precise"}

    assert "decimal.handling.mode" in of_mode(["1234"], "DECIMAL(10, 0)").refusals[0].reason
    assert of_mode(["1234"], "DECIMAL(10, 0)", **precise).array.to_pylist() == [Decimal(-2658824)]


def test_flinks_json_is_read_by_its_own_types() -> None:
    types = {
        "DECIMAL(38, 10)": ("1.5", Decimal("1.5000000000")),
        "TIMESTAMP(6)": ('"2024-05-14 01:02:03.456789"', local(2024, 5, 14, 1, 2, 3, 456789)),
        "TIMESTAMP_LTZ(3)": ('"2024-05-14 01:02:03Z"', datetime(2024, 5, 14, 1, 2, 3, tzinfo=UTC)),
        "TIME(3)": ('"01:02:03.456"', time(1, 2, 3, 456000)),
        "DATE": ('"2024-05-14"', date(2024, 5, 14)),
    }

    for type_, (text, expected) in types.items():
        written = of_flink(field(type_))
        schema = pa.schema([("v", read_type(written))])
        lines = pa.BufferReader(f'{{"v":{text}}}'.encode())
        column = pj.read_json(lines, parse_options=pj.ParseOptions(explicit_schema=schema))["v"].combine_chunks()
        assert converted(column, written, field(type_), CaptureModes()).array.to_pylist() == [expected]


def test_many_bad_values_share_a_reason() -> None:
    found = of_schema({"type": "int32"}, [*range(1000, 1100), 1], "TINYINT")

    masks = np.array([each.mask for each in found.refusals])
    assert len(masks) < 40
    assert masks.any(axis=0).tolist() == [True] * 100 + [False]
    assert found.array.to_pylist()[-1] == 1


def test_an_unknown_mode_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InvalidInputError, match="precise, string, double"):
        CaptureModes.parse({"debezium.decimal-handling-mode": "exact"})
