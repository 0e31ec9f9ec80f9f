"""Values that a real Debezium wrote for a real PostgreSQL, in every mode, against what the database said.

``SELECT column::text`` is the answer; nothing here knows how Debezium writes.
"""

from __future__ import annotations

import csv
import json
import re
import struct
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pj
import pytest

from storage_lib.log_store.codec.avro_cursor import AvroCursor, with_names_spelled_out
from storage_lib.log_store.codec.avro_records import fields_of
from storage_lib.log_store.conversion import avro_value_type, connect_schema
from storage_lib.log_store.conversion.assumed_value_type import of_modes
from storage_lib.log_store.conversion.capture_modes import CaptureModes
from storage_lib.log_store.conversion.captured_json import holds_float, holds_map, of_parsed, read_type
from storage_lib.log_store.conversion.captured_value_type import ValueType
from storage_lib.log_store.conversion.captured_values import converted
from storage_lib.log_store.conversion.new_column_type import table_type
from storage_lib.schema.types.data_field import DataField
from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.nested_types import ArrayType, children_of
from storage_lib.schema.types.type_spelling import parse_type
from tests.cdc.debezium_modes import MODES
from tests.support.recorded_changes import recorded, recorded_schemas, recorded_states

REFUSED = object()
EXACT = Context(prec=200)
DECLARED = {
    "boolean": "BOOLEAN",
    "smallint": "SMALLINT",
    "integer": "INT",
    "bigint": "BIGINT",
    "oid": "BIGINT",
    "real": "FLOAT",
    "double precision": "DOUBLE",
    "numeric(10,2)": "DECIMAL(10, 2)",
    "numeric(38,10)": "DECIMAL(38, 10)",
    "numeric": "DECIMAL(38, 5)",
    "money": "DECIMAL(19, 2)",
    "bytea": "BYTES",
    "date": "DATE",
    "time(0) without time zone": "TIME(0)",
    "time(3) without time zone": "TIME(3)",
    "time(6) without time zone": "TIME(6)",
    "timestamp(0) without time zone": "TIMESTAMP(0)",
    "timestamp(3) without time zone": "TIMESTAMP(3)",
    "timestamp without time zone": "TIMESTAMP(6)",
    "timestamp with time zone": "TIMESTAMP_LTZ(6)",
    "bit(1)": "BOOLEAN",
    "bit(10)": "BYTES",
    "bit varying(20)": "BYTES",
    "integer[]": "ARRAY<INT>",
    "text[]": "ARRAY<STRING>",
    "mood[]": "ARRAY<STRING>",
    "numeric(10,2)[]": "ARRAY<DECIMAL(10, 2)>",
    "timestamp with time zone[]": "ARRAY<TIMESTAMP_LTZ(6)>",
    "date[]": "ARRAY<DATE>",
    "point": "ROW<x DOUBLE, y DOUBLE>",
}
"""Types of a table that is declared like the database's; STRING for others."""

IN_OTHER_WORDS = ("time with time zone", "interval", "hstore")
"""Types whose text is not that of the database, but means the same."""


@pytest.mark.parametrize("mode", [name for name, mode in MODES.items() if not mode.is_flattened])
@pytest.mark.parametrize("table", ["every_type", "special_values"])
def test_values_are_those_of_the_database_or_refused(mode: str, table: str) -> None:
    # given
    said = answers(table)
    modes = modes_of(mode)
    types = recorded_states(table)[0].types

    # when
    found = {
        (name, str(of)): (ids, converted(column, written, DataField(id=0, name=name, type=of), modes), of)
        for name, (ids, column, written) in columns_of(mode, table, types, modes).items()
        for of in (parse_type(DECLARED.get(types[name], "STRING")), table_type(written))
        if of.root is parse_type(DECLARED.get(types[name], "STRING")).root and types[name] not in IN_OTHER_WORDS
    }

    # then
    not_told = {name for name, each in types.items() if each in (*IN_OTHER_WORDS, "numeric") or " varying(2" in each}
    assert {name for name, _ in found} >= types.keys() - not_told - {"bits"}
    for (name, _), (ids, conversion, of) in found.items():
        refused = np.zeros(len(ids), bool)
        for each in conversion.refusals:
            refused |= each.mask
        values = conversion.array.cast(as_numbers(conversion.array.type)).to_pylist()
        for row, value in enumerate(values):
            wanted = [repr(answer(text, types[name], of, mode)) for text in said[name, str(ids[row])]]
            assert repr(REFUSED if refused[row] else value) in wanted, (name, str(of), conversion.refusals)


def modes_of(mode: str) -> CaptureModes:
    names = ("decimal.handling.mode", "time.precision.mode", "binary.handling.mode")
    given = {name: value for name, value in MODES[mode].options.items() if name in names}
    return CaptureModes.parse({f"debezium.{name.replace('.', '-')}": value for name, value in given.items()})


def answers(table: str) -> dict[tuple[str, str], set[str | None]]:
    """Return what the database ever said of a column in the row of an id."""
    said: dict[tuple[str, str], set[str | None]] = {}
    for state in recorded_states(table):
        for row in state.rows:
            for name, text in row.items():
                said.setdefault((name, str(row["id"])), set()).add(text)
    return said


# ------------------------------------------------------------------------------------------------ columns of records

Columns = dict[str, tuple[list[int], pa.Array, ValueType]]


def columns_of(mode: str, table: str, types: Mapping[str, str], modes: CaptureModes) -> Columns:
    """Return ids, values and written type of every column that can be read in the mode."""
    values = [record.value for record in recorded(mode, table) if record.value is not None]
    if MODES[mode].form == "avro":
        return avro_columns(values)
    payloads = [json.loads(each) for each in values]
    described: dict[str, Any] = {}
    if MODES[mode].form == "json-schema":
        sides = {each["field"]: each for each in payloads[0]["schema"]["fields"]}
        described = {each["field"]: each for each in sides["after"]["fields"]}
        payloads = [each["payload"] for each in payloads]
    rows = [each["after"] for each in payloads if each["after"] is not None]
    found: Columns = {}
    for name, pg_type in types.items():
        if not described and is_only_told_by_a_schema(pg_type, rows, name, modes):
            continue
        of = DataField(id=0, name=name, type=parse_type(DECLARED.get(pg_type, "STRING")))
        written = connect_schema.value_type(described[name]) if described else of_modes(of, modes)
        found[name] = ([each["id"] for each in rows], json_column([each[name] for each in rows], written), written)
    return found


def is_only_told_by_a_schema(pg_type: str, rows: Sequence[Mapping[str, Any]], name: str, modes: CaptureModes) -> bool:
    """Whether values have not the form that the column's type lets expect: numerics of any scale, BIT strings."""
    is_bits = pg_type.startswith("bit") and pg_type != "bit(1)" and modes.binary is not None
    is_object = pg_type != "point" and any(isinstance(each[name], dict) for each in rows)
    return is_bits or is_object or pg_type == "interval"


def json_column(values: Sequence[Any], written: ValueType) -> pa.Array:
    if holds_map(written) or holds_float(written):
        return of_parsed(list(values), written)
    lines = "".join(json.dumps({"v": each}) + "\n" for each in values)
    options = pj.ParseOptions(explicit_schema=pa.schema([("v", read_type(written))]))
    return pj.read_json(pa.BufferReader(lines.encode()), parse_options=options)["v"].combine_chunks()


def avro_columns(values: Sequence[bytes]) -> Columns:
    schemas = recorded_schemas()
    numbers = {int.from_bytes(each[1:5], "big") for each in values}
    (number,) = numbers
    record: Any = with_names_spelled_out(json.loads(schemas[number]))
    offsets = np.cumsum([0, *(len(each) for each in values)])[:-1] + 5
    after = AvroCursor(np.frombuffer(b"".join(values), np.uint8), offsets).fields(record, ["after"])["after"]
    rows = after.filter(after.is_valid())
    types = fields_of(fields_of(record)["after"])
    ids = rows.field("id").to_pylist()
    return {name: (ids, rows.field(name), avro_value_type.value_type(types[name])) for name in types}


# ------------------------------------------------------------------------------------------------- the database's text


def answer(  # noqa: C901, PLR0911  one per kind of type
    text: str | None, pg_type: str, of: DataType, mode: str
) -> Any:
    """Return the value of a column of type ``of`` that PostgreSQL's text stands for."""
    if text is None:
        return None
    if isinstance(of, ArrayType):
        elements = next(csv.reader([text[1:-1]])) if text != "{}" else []
        return [
            None if each == "NULL" else answer(each, pg_type.removesuffix("[]"), of.element, mode) for each in elements
        ]
    match of.root:
        case TypeRoot.BOOLEAN:
            return text in {"true", "1"}
        case TypeRoot.SMALLINT | TypeRoot.INTEGER | TypeRoot.BIGINT:
            return int(text)
        case TypeRoot.FLOAT:
            return float(np.float32(text))
        case TypeRoot.DOUBLE:
            return float(text)
        case TypeRoot.DECIMAL:
            return decimal(text, of, mode)
        case TypeRoot.VARBINARY:
            return bytes.fromhex(text[2:]) if pg_type == "bytea" else bits(text)
        case TypeRoot.ROW:
            x, y = (float(each) for each in text[1:-1].split(","))
            point = {"x": x, "y": y, "wkb": b"\1\1\0\0\0" + struct.pack("<dd", x, y), "srid": None}
            return {name: point[name] for name, _ in children_of(of)}
        case TypeRoot.VARCHAR:
            return text.ljust(3) if pg_type == "character(3)" else text
    return moment(text, of, mode)


def decimal(text: str, of: DataType, mode: str) -> Any:
    if text == "NaN":
        # In mode precise, Debezium itself writes null.
        return REFUSED if "as" in mode else None
    number = Decimal(text.replace("$", "").replace(",", ""))
    if "as-connect" in mode:
        number = Decimal(repr(float(number)))
    whole = number.scaleb(of.scale or 0, EXACT)
    is_fitting = whole == whole.to_integral_value(context=EXACT) and whole.copy_abs() < 10 ** (of.precision or 0)
    return Decimal(int(whole)).scaleb(-(of.scale or 0), EXACT) if is_fitting else REFUSED


def bits(text: str) -> bytes:
    return int(text, 2).to_bytes((len(text) + 7) // 8, "little").rstrip(b"\0")  # as Debezium writes them


def moment(text: str, of: DataType, mode: str) -> Any:
    if "infinity" in text or "BC" in text or re.match(r"\d{5,}-", text):
        return REFUSED
    if of.root is TypeRoot.DATE:
        return int(np.datetime64(text, "D").astype(int))
    is_millis = "as-connect" in mode and of.root is not TypeRoot.TIMESTAMP_LTZ
    if of.root is TypeRoot.TIME:
        if text == "24:00:00":
            return 0 if "as-text" in mode else REFUSED  # in mode isostring, Debezium itself writes 00:00:00
        return int(np.datetime64(f"1970-01-01T{text}", "ms").astype(int))
    count = int(np.datetime64(text.removesuffix("+00").replace(" ", "T"), "us").astype(int))
    count = count // 1000 * 1000 if is_millis else count
    return count // 1000 if of.arrow.unit == "ms" else count


def as_numbers(of: pa.DataType) -> pa.DataType:
    """Return the type with whole numbers for dates, times and timestamps, some of which Python can't hold."""
    if pa.types.is_temporal(of):
        return pa.int64() if of.bit_width == pa.int64().bit_width else pa.int32()
    return pa.list_(pa.field("element", as_numbers(of.value_type))) if pa.types.is_list(of) else of
