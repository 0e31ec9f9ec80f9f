"""Values of every type that Debezium writes, in every mode and encoding, against what the database holds.

The writer (``tests/support/debezium_values.py``) follows Debezium's documentation.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
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
from storage_lib.schema.types.type_spelling import parse_type
from tests.support.database_values import REFUSED, expected, is_told_by_modes, raw, table_type_of
from tests.support.debezium_values import Form, Modes, Source, a_source, avro_schema

ROUNDS = 400


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


@pytest.mark.parametrize(
    "field",
    [
        {"name": "item", "type": ["null", {"type": "string", "connect.doc": "as sold"}], "default": None},
        {"name": "item", "type": "string", "doc": "as sold"},
        {"name": "item", "type": {"type": "string", "connect.doc": "as sold"}},
    ],
)
def test_a_converter_of_avro_writes_the_comment_of_a_column_at_its_type_or_its_field(field: dict[str, Any]) -> None:
    of = avro_value_type.value_type({"type": "record", "name": "row", "fields": [field]})

    assert [(name, each.comment) for name, each in of.fields] == [("item", "as sold")]
