"""The encoding of changes as debezium-json, value by value, and values refused when decoding."""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from decimal import Decimal

import pyarrow as pa
import pytest

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.codec.debezium_json import DebeziumJson
from storage_lib.log_store.codec.log_codec import CorruptRecordError
from storage_lib.schema.options.table_options import ChangelogMode
from storage_lib.schema.table_schema import TableSchema, new_table_schema
from storage_lib.schema.types.data_types import parse_data_type
from tests.support.log_changes import changes, log_schema

KEYED = log_schema()
KEYLESS = log_schema(key=False)


def spelled(schema: TableSchema, mode: ChangelogMode, text: str) -> list[str]:
    codec = DebeziumJson.for_table(schema, mode)
    return [value.decode() for part in codec.encode(*changes(schema, text)) for value in part.values.to_pylist()]


def column_schema(declared: str) -> TableSchema:
    columns = [("v", parse_data_type(declared))]
    return new_table_schema(columns, options={"bucket": "1"}, time_millis=0)


def json_of(declared: str, value: object) -> object:
    schema = column_schema(declared)
    arrow = schema.field("v").type.arrow
    rows = pa.RecordBatch.from_arrays([pa.array([value], arrow)], schema=schema.arrow_schema)
    (part,) = DebeziumJson.for_table(schema, ChangelogMode.ALL).encode(rows, pa.array([0], pa.int8()))
    return json.loads(part.values[0].as_py())["after"]["v"]


def decoded(schema: TableSchema, *values: bytes | None) -> list[tuple[int, dict[str, object], int]]:
    found = DebeziumJson.for_table(schema, ChangelogMode.AUTO).decode(pa.array(values, pa.binary()))
    return list(zip(found.kinds.to_pylist(), found.rows.to_pylist(), found.record_indices.tolist(), strict=True))


def local(second: int, microsecond: int = 0) -> dt.datetime:
    """Return a TIMESTAMP, which has no time zone."""
    return dt.datetime(1970, 1, 1, 0, 0, second, microsecond)  # noqa: DTZ001


def test_upsert_mode_spells_each_kind() -> None:
    assert spelled(KEYED, ChangelogMode.AUTO, "+I 1 a, -U 1 a, +U 1 b, -D 1 b") == [
        '{"before":null,"after":{"id":1,"name":"a"},"op":"c"}',
        '{"before":null,"after":{"id":1,"name":"b"},"op":"u"}',
        '{"before":{"id":1,"name":"b"},"after":null,"op":"d"}',
    ]


def test_upsert_mode_deletes_by_a_half_of_whose_key_nothing_follows() -> None:
    assert spelled(KEYED, ChangelogMode.AUTO, "-U 1 a, +U 2 a, -U 3 b, +U 3 c, +U 4 d, -U 4 d, -U 4 e") == [
        '{"before":{"id":1,"name":"a"},"after":null,"op":"d"}',
        '{"before":null,"after":{"id":2,"name":"a"},"op":"u"}',
        '{"before":null,"after":{"id":3,"name":"c"},"op":"u"}',
        '{"before":null,"after":{"id":4,"name":"d"},"op":"u"}',
        '{"before":{"id":4,"name":"e"},"after":null,"op":"d"}',
    ]


def test_all_mode_joins_adjacent_halves_of_one_update() -> None:
    assert spelled(KEYED, ChangelogMode.ALL, "+I 1 a, -U 1 a, +U 1 b, -D 1 b") == [
        '{"before":null,"after":{"id":1,"name":"a"},"op":"c"}',
        '{"before":{"id":1,"name":"a"},"after":{"id":1,"name":"b"},"op":"u"}',
        '{"before":{"id":1,"name":"b"},"after":null,"op":"d"}',
    ]


def test_all_mode_spells_halves_of_different_keys_apart() -> None:
    assert spelled(KEYED, ChangelogMode.ALL, "-U 1 a, +U 2 b") == [
        '{"before":{"id":1,"name":"a"},"after":null,"op":"d"}',
        '{"before":null,"after":{"id":2,"name":"b"},"op":"c"}',
    ]
    assert len(spelled(KEYLESS, ChangelogMode.AUTO, "-U 1 a, +U 2 b")) == 1


def test_all_mode_spells_a_lone_half_apart() -> None:
    assert spelled(KEYLESS, ChangelogMode.AUTO, "+U 1 a, -U 1 a") == [
        '{"before":null,"after":{"id":1,"name":"a"},"op":"c"}',
        '{"before":{"id":1,"name":"a"},"after":null,"op":"d"}',
    ]


def test_a_pair_is_never_cut_by_the_size_of_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage_lib.log_store.codec.debezium_envelope._SLICE_ROWS_MAX", 2)

    values = spelled(KEYLESS, ChangelogMode.AUTO, "+I 1 a, -U 1 a, +U 1 b, -U 1 b, +U 1 c")

    assert [json.loads(value)["op"] for value in values] == ["c", "u", "u"]


def test_keys_are_the_primary_key_columns_or_null() -> None:
    (keyed,) = DebeziumJson.for_table(KEYED, ChangelogMode.AUTO).encode(*changes(KEYED, "+I 1 a, -D 2 b"))
    (keyless,) = DebeziumJson.for_table(KEYLESS, ChangelogMode.AUTO).encode(*changes(KEYLESS, "+I 1 a"))

    assert keyed.keys.to_pylist() == [b'{"id":1}', b'{"id":2}']
    assert keyless.keys.to_pylist() == [None]


def test_upsert_mode_without_a_key_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="needs a primary key"):
        DebeziumJson.for_table(KEYLESS, ChangelogMode.UPSERT)


@pytest.mark.parametrize(
    ("declared", "value", "spelling"),
    [
        ("BOOLEAN", True, True),
        ("BIGINT", -(2**63), -(2**63)),
        ("DOUBLE", 0.1, 0.1),
        ("DOUBLE", math.nan, "NaN"),
        ("FLOAT", math.inf, "Infinity"),
        ("DOUBLE", -math.inf, "-Infinity"),
        ("STRING", 'tab\t quote" \u0000 😀', 'tab\t quote" \u0000 😀'),
        ("BYTES", b"\x00\xff", "AP8="),
        ("BYTES", b"", ""),
        ("DATE", dt.date(2024, 5, 14), 19_857),
        ("DATE", dt.date(1, 1, 1), -719_162),
        ("TIME(3)", dt.time(0, 0, 1, 5_000), 1_005),
        ("TIMESTAMP(0)", local(1), 1_000),
        ("TIMESTAMP(3)", local(1, 5_000), 1_005),
        ("TIMESTAMP(6)", local(1, 5), 1_000_005),
        ("TIMESTAMP(9)", local(1, 5), 1_000_005_000),
        ("TIMESTAMP_LTZ(3)", dt.datetime(2024, 5, 14, 12, tzinfo=dt.UTC), "2024-05-14T12:00:00.000Z"),
        ("TIMESTAMP_LTZ(6)", dt.datetime(2024, 5, 14, 12, 0, 0, 1, tzinfo=dt.UTC), "2024-05-14T12:00:00.000001Z"),
        ("INT", None, None),
    ],
)
def test_values_look_as_debezium_writes_them(declared: str, value: object, spelling: object) -> None:
    assert json_of(declared, value) == spelling


@pytest.mark.parametrize(
    "text",
    ["0", "0.01", "1.27", "1.28", "-1.28", "-1.29", "-0.01", "327.67", "327.68", "99999999.99", "-99999999.99"],
)
def test_decimals_are_the_fewest_bytes_of_the_unscaled_value(text: str) -> None:
    """As ``java.math.BigInteger.toByteArray``: one bit for the sign, then the minimal magnitude."""
    unscaled = int(Decimal(text).scaleb(2))
    magnitude_bits = (unscaled if unscaled >= 0 else -unscaled - 1).bit_length()
    expected = unscaled.to_bytes(magnitude_bits // 8 + 1, "big", signed=True)

    assert base64.b64decode(str(json_of("DECIMAL(10, 2)", Decimal(text)))) == expected


def test_a_zoned_timestamp_beyond_iso_years_is_refused_with_its_column() -> None:
    schema = column_schema("TIMESTAMP_LTZ(3)")
    rows = pa.RecordBatch.from_arrays(
        [pa.array([253_402_300_800_000], pa.timestamp("ms", "UTC"))], schema=schema.arrow_schema
    )

    with pytest.raises(InvalidInputError, match=r"column 'v'.*0001 to 9999"):
        list(DebeziumJson.for_table(schema, ChangelogMode.ALL).encode(rows, pa.array([0], pa.int8())))


def test_an_update_with_before_is_read_as_a_pair_of_one_record() -> None:
    value = b'{"before":{"id":1,"name":"a"},"after":{"id":1,"name":"b"},"op":"u"}'

    assert decoded(KEYED, value, value) == [
        (1, {"id": 1, "name": "a"}, 0),
        (2, {"id": 1, "name": "b"}, 0),
        (1, {"id": 1, "name": "a"}, 1),
        (2, {"id": 1, "name": "b"}, 1),
    ]


def test_what_other_writers_do_is_understood() -> None:
    pretty = b'{\n "op" : "r",\n "ts_ms": 5, "source": {"db": [{}]},\n "after": {"id": 1, "more": {"x": 1}}\n} \n'
    reordered = b'\t{"op":"d","after":null,"before":{"name":"b","id":2}}'

    assert decoded(KEYED, pretty, None, reordered) == [
        (0, {"id": 1, "name": None}, 0),
        (3, {"id": 2, "name": "b"}, 2),
    ]


def test_not_finite_numbers_beside_lookalike_texts() -> None:
    schema = new_table_schema(
        pa.schema([("s", pa.string()), ("x", pa.float64()), ("y", pa.float32())]),
        options={"bucket": "1"},
        time_millis=0,
    )
    spaced = b'{"before":null,"after":{"s":"\\"x\\":\\"NaN\\"", "x" : "NaN" ,"y":1.5},"op":"c"}'
    ((_, row, _),) = decoded(schema, spaced)

    assert (row["s"], row["y"]) == ('"x":"NaN"', 1.5)
    assert math.isnan(row["x"])  # type: ignore[arg-type]


GOOD = b'{"before":null,"after":{"id":1,"name":"a"},"op":"c"}'


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"null",
        b"1",
        b"[]",
        b"{}",
        b"{",
        b"\xff",
        b'{"before":null,"after":null,"op":"c"}',
        b'{"before":null,"after":{"id":1,"name":"a"},"op":"d"}',
        b'{"before":null,"after":{"id":1,"name":"a"},"op":"x"}',
        b'{"before":null,"after":{"id":1,"name":"a"}}',
        b'{"before":null,"after":{"id":null,"name":"a"},"op":"c"}',
        b'{"before":null,"after":{"name":"a"},"op":"c"}',
        b'{"before":null,"after":{"id":"1","name":"a"},"op":"c"}',
        b'{"before":null,"after":{"id":1.5,"name":"a"},"op":"c"}',
        b'{"before":null,"after":{"id":9223372036854775808,"name":"a"},"op":"c"}',
        b'{"before":null,"after":{"id":1,"name":7},"op":"c"}',
        b'{"before":null,"after":{"id":1,"name":"\xc3\x28"},"op":"c"}',
        GOOD + GOOD,
        GOOD + b"\n" + GOOD,
        GOOD + b"null" + GOOD,
        GOOD + b" null" + GOOD,
        GOOD + b" x",
        GOOD[:-1],
        b"{" + GOOD,
        b'{"op":' + 5_000 * b"[",
    ],
)
def test_the_first_corrupt_value_is_found_among_good_ones(bad: bytes) -> None:
    """Includes ``null`` between two objects, which would crash the parser's process."""
    values = pa.array([GOOD, None, GOOD, bad, GOOD, bad, GOOD], pa.binary())

    with pytest.raises(CorruptRecordError) as caught:
        DebeziumJson.for_table(KEYED, ChangelogMode.AUTO).decode(values)

    assert caught.value.index == 3
    assert str(caught.value)


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("BYTES", '"?"'),
        ("DECIMAL(4, 2)", '"AQAA"'),
        ("DECIMAL(4, 2)", '""'),
        ("DECIMAL(38, 0)", '"AAAAAAAAAAAAAAAAAAAAAAAAAAAA"'),
        ("DECIMAL(4, 2)", "1.5"),
        ("TIME(3)", "86400000"),
        ("TIME(3)", "-1"),
        ("DATE", '"2024-05-14"'),
        ("DATE", "2147483648"),
        ("TIMESTAMP(3)", '"2024-05-14 00:00:00"'),
        ("TIMESTAMP_LTZ(3)", '"yesterday"'),
        ("TIMESTAMP_LTZ(3)", "5"),
        ("DOUBLE", '"1.5"'),
        ("DOUBLE", '"nan"'),
        ("BOOLEAN", "1"),
        ("TINYINT", "128"),
    ],
)
def test_a_spelling_of_another_type_is_corrupt(declared: str, value: str) -> None:
    with pytest.raises(CorruptRecordError):
        decoded(column_schema(declared), b'{"before":null,"after":{"v":%s},"op":"c"}' % value.encode())


def test_an_offset_instead_of_z_is_understood() -> None:
    value = b'{"before":null,"after":{"v":"2024-05-14T14:00:00+02:00"},"op":"c"}'
    ((_, row, _),) = decoded(column_schema("TIMESTAMP_LTZ(3)"), value)

    assert row["v"] == dt.datetime(2024, 5, 14, 12, tzinfo=dt.UTC)


def test_nothing_decodes_to_no_rows_of_the_table() -> None:
    found = DebeziumJson.for_table(KEYED, ChangelogMode.AUTO).decode(pa.nulls(0, pa.binary()))

    assert found.rows.schema == KEYED.arrow_schema
    assert len(found.rows) == len(found.kinds) == len(found.record_indices) == 0
