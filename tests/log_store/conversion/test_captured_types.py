"""Values of every type that Debezium writes, in every mode and encoding, against what the database holds.

The writer (``tests/support/debezium_values.py``) follows Debezium's documentation.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.json as pj
import pytest

from storage_lib.log_store.codec.avro_cursor import AvroCursor, with_names_spelled_out
from storage_lib.log_store.conversion import avro_value_type, connect_schema
from storage_lib.log_store.conversion.assumed_value_type import of_modes
from storage_lib.log_store.conversion.capture_modes import CaptureModes
from storage_lib.log_store.conversion.captured_json import holds_float, holds_map, of_parsed, read_type
from storage_lib.log_store.conversion.captured_value_type import ValueType
from storage_lib.log_store.conversion.captured_values import converted
from storage_lib.log_store.conversion.new_column_type import table_type
from storage_lib.schema.types.data_field import DataField
from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.nested_types import ArrayType, MapType, RowType
from storage_lib.schema.types.type_spelling import parse_type
from tests.support.debezium_values import DAY, EXACT, Form, Modes, Source, a_source, avro_schema

ROUNDS = 400
REFUSED = object()
PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}


def test_values_of_every_type_mode_and_encoding_are_those_of_the_database() -> None:
    play(seed=1, rounds=ROUNDS)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(2, 10))
def test_further_values_are_those_of_the_database(seed: int) -> None:
    play(seed, rounds=1500)


def play(seed: int, rounds: int) -> None:
    chance = random.Random(seed)  # noqa: S311  reproducible
    for number in range(rounds):
        modes = Modes.draw(chance)
        source = a_source(chance, modes)
        values = [None if chance.random() < 0.15 else source.draw(chance) for _ in range(chance.randint(1, 8))]
        options = modes.options | {
            "source.out-of-range": chance.choice(("reject", "null", "clamp")),
            "source.time-precision": chance.choice(("auto", "truncate", "round", "reject")),
        }
        encoding = chance.choice(("schema", "plain", "avro"))
        print(f"seed {seed}, round {number}: {encoding} {source} {modes} {options} {values}")
        check(source, values, modes, options, encoding, chance)


def check(
    source: Source,
    values: Sequence[Any],
    modes: Modes,
    options: dict[str, str],
    encoding: str,
    chance: random.Random,
) -> None:
    form, parsed = source.form(modes), CaptureModes.parse(options)
    declared = parse_type(table_type_of(source, modes))
    match encoding:
        case "avro":
            schema = with_names_spelled_out(avro_schema({**form.schema, "optional": True}))
            written, column = avro_value_type.value_type(schema), avro_column(values, form, schema)
        case "schema":
            written = connect_schema.value_type(form.schema)
            column = json_column(values, form, written)
        case _:
            if not is_told_by_modes(source, modes):
                return
            written = of_modes(DataField(id=0, name="v", type=declared), parsed)
            column = json_column(values, form, written)
    types = [declared] if encoding == "plain" else [declared, table_type(written), *less_precise(declared, chance)]
    for of in types:
        found = converted(column, written, DataField(id=0, name="v", type=of), parsed)
        wanted = [None if each is None else expected(source, each, modes, options, of) for each in values]
        is_refused = np.zeros(len(values), bool)
        for each in found.refusals:
            is_refused |= each.mask
        assert found.array.type == of.arrow
        assert is_refused.tolist() == [each is REFUSED for each in wanted], (str(of), found.refusals)
        assert repr(raw(found.array)) == repr([None if each is REFUSED else each for each in wanted]), str(of)


def table_type_of(source: Source, modes: Modes) -> str:
    if modes.interval == "string":
        return source.table_type.replace("BIGINT", "STRING") if has(source, "interval") else source.table_type
    return source.table_type


def has(source: Source, *kinds: str) -> bool:
    return source.kind in kinds or any(has(each, *kinds) for each in source.parts.values())


def is_told_by_modes(source: Source, modes: Modes) -> bool:
    """Whether a record without a schema can be read: not an object for a decimal, not BIT strings as bytes in text."""
    if has(source, "interval") and has(source, "bigint"):
        return False  # the declared type of an interval in mode string is replaced by its name
    return not (has(source, "any numeric") and modes.decimal == "precise") and not (
        has(source, "bits") and modes.binary != "bytes"
    )


def less_precise(of: DataType, chance: random.Random) -> list[DataType]:
    if of.root in (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ, TypeRoot.TIME):
        return [DataType(of.root, precision=chance.randint(0, 9))]
    if of.root is TypeRoot.DECIMAL:
        precision = chance.randint(1, 38)
        return [DataType(of.root, precision=precision, scale=chance.randint(0, precision))]
    return []


# ------------------------------------------------------------------------------------------------------- encodings


def json_column(values: Sequence[Any], form: Form, written: ValueType) -> pa.Array:
    written_values = [None if each is None else form.json(each) for each in values]
    lines = [json.dumps({"v": each}, ensure_ascii=False) for each in written_values]
    if holds_map(written) or holds_float(written):
        return of_parsed([json.loads(each)["v"] for each in lines], written)
    schema = pa.schema([("v", read_type(written))])
    read = pj.read_json(
        pa.BufferReader("\n".join(lines).encode()), parse_options=pj.ParseOptions(explicit_schema=schema)
    )
    return read["v"].combine_chunks()


def avro_column(values: Sequence[Any], form: Form, schema: Any) -> pa.Array:
    record = {"type": "record", "name": "r", "fields": [{"name": "v", "type": without_logical(schema)}]}
    parsed = fastavro.parse_schema(record)
    content, starts = io.BytesIO(), []
    for each in values:
        starts.append(content.tell())
        fastavro.schemaless_writer(content, parsed, {"v": None if each is None else form.avro(each)})
    data = np.frombuffer(content.getvalue(), np.uint8)
    found = AvroCursor(data, np.array(starts, np.int64)).fields(
        {**record, "fields": [{"name": "v", "type": schema}]}, ["v"]
    )
    return found["v"]


def without_logical(schema: Any) -> Any:
    """Return the schema without what makes fastavro convert values itself."""
    if isinstance(schema, list):
        return [without_logical(each) for each in schema]
    if isinstance(schema, dict):
        return {key: without_logical(value) for key, value in schema.items() if key != "logicalType"}
    return schema


# -------------------------------------------------------------------------------------------------- expected values


def raw(array: pa.Array) -> list[Any]:
    """Return values with whole numbers for dates, times and timestamps, some of which Python can't hold."""
    return array.cast(as_numbers(array.type)).to_pylist()


def as_numbers(of: pa.DataType) -> pa.DataType:
    if pa.types.is_temporal(of):
        return pa.int64() if of.bit_width == pa.int64().bit_width else pa.int32()
    if pa.types.is_map(of):
        return pa.map_(of.key_type, as_numbers(of.item_type))
    if pa.types.is_list(of):
        return pa.list_(pa.field("element", as_numbers(of.value_type)))
    if pa.types.is_struct(of):
        return pa.struct([pa.field(each.name, as_numbers(each.type)) for each in of])
    return of


def expected(source: Source, value: Any, modes: Modes, options: dict[str, str], of: DataType) -> Any:
    """Return what a column of this type has to hold for a value of the database, or ``REFUSED``."""
    match source.kind, of:
        case "array", ArrayType():
            inside = [part(source.parts["element"], each, modes, options, of.element) for each in value]
            return REFUSED if any(each is REFUSED for each in inside) else inside
        case "hstore", MapType():
            return list(value.items())
        case "row", RowType():
            fields = {
                each.name: part(source.parts[each.name], value[each.name], modes, options, each.type)
                for each in of.fields
            }
            return REFUSED if any(each is REFUSED for each in fields.values()) else fields
    return scalar(source, value, modes, options, of)


def part(source: Source, value: Any, modes: Modes, options: dict[str, str], of: DataType) -> Any:
    return None if value is None else expected(source, value, modes, options, of)


def scalar(  # noqa: PLR0911  one per kind of type
    source: Source, value: Any, modes: Modes, options: dict[str, str], of: DataType
) -> Any:
    match source.kind:
        case "numeric" | "any numeric":
            return decimal(value, modes, of)
        case "date":
            return ranged(value, -719_162, 2_932_896, options)
        case "time":
            written = modes.nanos("time", source.precision)
            return moment(value // written * written, 0, DAY - 1, options, of)
        case "timestamp" | "timestamptz":
            written = modes.nanos("timestamp", source.precision) if source.kind == "timestamp" else 1
            low, high = -62_135_596_800 * 10**9, 253_402_300_800 * 10**9 - 1
            if of.arrow.unit == "ns":
                low, high = -9_223_372_035 * 10**9, 9_223_372_036 * 10**9 - 1
            return moment(value // written * written, low, high, options, of)
        case "bits":
            return value.to_bytes((source.precision + 7) // 8, "little").rstrip(b"\0")
    if of.root is TypeRoot.VARCHAR:
        return str(source.form(modes).json(value))
    return value


def decimal(value: Decimal, modes: Modes, of: DataType) -> Any:
    if modes.decimal == "double":
        if of.root is TypeRoot.DOUBLE:
            return float(value)
        value = Decimal(repr(float(value)))
    if of.root is TypeRoot.VARCHAR:
        return format(value, "f")
    scale = of.scale or 0
    unscaled = value.scaleb(scale, EXACT)
    if unscaled != unscaled.to_integral_value(context=EXACT) or unscaled.copy_abs() >= 10 ** (of.precision or 0):
        return REFUSED
    return Decimal(int(unscaled)).scaleb(-scale, EXACT)


def ranged(value: int, low: int, high: int, options: dict[str, str]) -> Any:
    if low <= value <= high:
        return value
    return {"reject": REFUSED, "null": None, "clamp": min(max(value, low), high)}[options["source.out-of-range"]]


def moment(nanos: int, low: int, high: int, options: dict[str, str], of: DataType) -> Any:
    step = 10**9 // PER_SECOND[of.arrow.unit]
    if not low <= nanos <= high:
        far = ranged(nanos, low, high, options)
        return far if far is REFUSED or far is None else far // step
    if nanos % step == 0:
        return nanos // step
    how = options["source.time-precision"]
    if how == "reject" or (how == "auto" and of.root is not TypeRoot.TIME):
        return REFUSED
    rounded = (nanos + step // 2) // step if how == "round" else nanos // step
    return min(rounded, high // step)
