"""Random values of every type, in every mode and format of Debezium: the table holds the values of the database.

A record with a value that its column can't hold is skipped, and counted.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from storage_lib import MemoryCatalog
from storage_lib.log_store.capture.avro_record_decoder import AvroRecordDecoder
from storage_lib.log_store.capture.captured_table import CapturedTable
from storage_lib.log_store.codec.avro_records import head_of
from storage_lib.log_store.codec.schema_registry import SchemaRegistry
from storage_lib.log_store.conversion.capture_modes import CaptureModes
from storage_lib.schema.options.source_options import OutOfRange, TimePrecision
from storage_lib.schema.table_schema import new_table_schema
from storage_lib.schema.types.type_spelling import parse_type
from tests.support.database_values import REFUSED, as_numbers, expected, is_told_by_modes, table_type_of
from tests.support.debezium_values import Form, Modes, Source, a_source, avro_schema
from tests.support.fake_environment import fake_environment
from tests.support.raw_topic import RawTopic, Record, columns_of

ID = Source(kind="bigint")
FORMATS = ("debezium-json", "debezium-json-schema", "debezium-flattened-json", "debezium-flattened-json-schema")
AVRO_FORMATS = ("debezium-avro", "debezium-flattened-avro")
Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of one row; ``row`` is the new one, or None for a deletion."""

    id: int
    row: Row | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """A registry that has one schema."""

    text: str

    def schema(self, number: int) -> str:
        return self.text


def test_a_table_holds_values_of_every_type_in_every_mode_and_format() -> None:
    play(seed=1, rounds=40)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(2, 10))
def test_a_table_holds_further_values(seed: int) -> None:
    play(seed, rounds=400)


def play(seed: int, rounds: int) -> None:
    chance = random.Random(seed)  # noqa: S311  reproducible
    for number in range(rounds):
        modes = Modes.draw(chance)
        options = modes.options | {
            "source.out-of-range": chance.choice(tuple(OutOfRange)),
            "source.time-precision": chance.choice(tuple(TimePrecision)),
        }
        format_ = chance.choice((*FORMATS, *AVRO_FORMATS))
        sources = {"id": ID}
        while len(sources) < 1 + number % 4 + 1:
            source = a_source(chance, modes)
            if "schema" in format_ or "avro" in format_ or is_told_by_modes(source, modes):
                sources[f"c{len(sources)}"] = source
        changes = [a_change(sources, chance) for _ in range(chance.randint(1, 12))]
        print(f"seed {seed}, round {number}: {format_} {modes} {options} {sources} {changes}")
        if format_ in AVRO_FORMATS:
            check_decoded(sources, changes, modes, options, is_flattened=format_ == AVRO_FORMATS[1])
        else:
            check_ingested(sources, changes, modes, options, format_, chance.choice((1, 3, 1000)))


def a_change(sources: Mapping[str, Source], chance: random.Random) -> Change:
    number = chance.randint(1, 4)
    if chance.random() < 0.15:
        return Change(id=number, row=None)
    values = {name: None if chance.random() < 0.15 else each.draw(chance) for name, each in sources.items()}
    return Change(id=number, row=values | {"id": number})


# ----------------------------------------------------------------------------------------------------------- checks


def check_ingested(
    sources: Mapping[str, Source],
    changes: list[Change],
    modes: Modes,
    options: dict[str, str],
    format_: str,
    batch_size: int,
) -> None:
    # given
    topic = RawTopic(batch_size=batch_size)
    types = {name: table_type_of(each, modes) for name, each in sources.items()}
    columns = types | {"id": "BIGINT NOT NULL"}  # Arrow's types do not tell TIME(3) from TIME(6)
    catalog = MemoryCatalog(environment=fake_environment())
    table = catalog.create_table("shop.every", columns, primary_key=["id"], options={"log.system": "none"})
    forms = {name: each.form(modes) for name, each in sources.items()}
    for change in changes:
        topic.tell(json.dumps({"id": change.id}).encode(), json_record(change, forms, format_))

    # when
    found = topic.ingest(table, format=format_, on_reject="skip", options=options)

    # then
    rows, refused = answers(sources, changes, modes, options)
    stored = table.to_arrow()
    numbers = pa.table({name: stored[name].cast(as_numbers(stored[name].type)) for name in stored.column_names})
    assert {row["id"]: repr(row) for row in numbers.to_pylist()} == {key: repr(row) for key, row in rows.items()}
    assert found.skipped_count == refused


def check_decoded(
    sources: Mapping[str, Source], changes: list[Change], modes: Modes, options: dict[str, str], *, is_flattened: bool
) -> None:
    # given
    forms = {name: each.form(modes) for name, each in sources.items()}
    schema = avro_record(forms, is_flattened=is_flattened)
    parsed = fastavro.parse_schema(without_logical(schema))
    columns = columns_of_table(sources, modes)
    records: list[Record] = []
    for number, change in enumerate(changes):
        content = io.BytesIO(head_of(7))
        content.seek(0, io.SEEK_END)
        fastavro.schemaless_writer(content, parsed, avro_value(change, forms, is_flattened=is_flattened))
        records.append((number, json.dumps({"id": change.id}).encode(), content.getvalue()))
    decoder = AvroRecordDecoder(
        table=CapturedTable(
            schema=new_table_schema(columns, primary_keys=["id"], options={"bucket": "1"}, time_millis=0),
            modes=CaptureModes.parse(options),
        ),
        registry=cast("SchemaRegistry", Registry(text=json.dumps(schema))),
        is_flattened=is_flattened,
    )

    # when
    found = decoder.captured(columns_of(records))

    # then
    wanted = [answer(sources, change, modes, options) for change in changes]
    is_refused = np.zeros(len(changes), bool)
    is_refused[[each.record_index for each in found.refusals]] = True
    assert is_refused.tolist() == [each is REFUSED for each in wanted], found.refusals
    names = found.rows.schema.names
    arrays = [found.rows[name].cast(as_numbers(found.rows[name].type)) for name in names]
    rows = pa.RecordBatch.from_arrays(arrays, names).to_pylist()
    kept = [(change, each) for change, each in zip(changes, wanted, strict=True) if each is not REFUSED]
    assert len(rows) == len(kept)
    for row, (change, each) in zip(rows, kept, strict=True):
        assert repr(row) == repr(each) if change.row is not None else row["id"] == change.id


def columns_of_table(sources: Mapping[str, Source], modes: Modes) -> pa.Schema:
    types = {name: parse_type(table_type_of(each, modes)).arrow for name, each in sources.items()}
    return pa.schema([pa.field(name, of, nullable=name != "id") for name, of in types.items()])


def answers(
    sources: Mapping[str, Source], changes: list[Change], modes: Modes, options: dict[str, str]
) -> tuple[dict[int, Row], int]:
    """Return the rows of the table by key, and the number of refused records."""
    rows: dict[int, Row] = {}
    refused = 0
    for change in changes:
        row = answer(sources, change, modes, options)
        if row is REFUSED:
            refused += 1
        elif change.row is None:
            rows.pop(change.id, None)
        else:
            rows[change.id] = row
    return rows, refused


def answer(sources: Mapping[str, Source], change: Change, modes: Modes, options: dict[str, str]) -> Any:
    if change.row is None:
        return None
    row = {
        name: None
        if change.row[name] is None
        else expected(each, change.row[name], modes, options, parse_type(table_type_of(each, modes)))
        for name, each in sources.items()
    }
    return REFUSED if any(each is REFUSED for each in row.values()) else row


# ---------------------------------------------------------------------------------------------------------- records


def json_record(change: Change, forms: Mapping[str, Form], format_: str) -> bytes:
    is_flattened = "flattened" in format_
    schema = connect_envelope(forms, is_flattened=is_flattened)
    row = values_of(change, forms, "json")
    payload = enveloped(change, row, is_flattened=is_flattened)
    record = {"schema": schema, "payload": payload} if "schema" in format_ else payload
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()


def values_of(change: Change, forms: Mapping[str, Form], encoding: str) -> Row:
    """Return the row as written; of a deletion, whose old row is not logged, only the key."""
    row = change.row or {"id": change.id}
    return {name: None if row.get(name) is None else getattr(each, encoding)(row[name]) for name, each in forms.items()}


def enveloped(change: Change, row: Row, *, is_flattened: bool) -> Row:
    is_deletion = change.row is None
    if is_flattened:
        return {**row, "__op": "d" if is_deletion else "u", "__deleted": str(is_deletion).lower()}
    before, after = (row, None) if is_deletion else (None, row)
    source = {"connector": "postgresql", "table": "every"}
    return {"before": before, "after": after, "source": source, "op": "d" if is_deletion else "u"}


def connect_envelope(forms: Mapping[str, Form], *, is_flattened: bool) -> Row:
    fields = [{**each.schema, "optional": True, "field": name} for name, each in forms.items()]
    text = {"type": "string", "optional": True}
    if is_flattened:
        others = [{**text, "field": name} for name in ("__op", "__deleted")]
        return {"type": "struct", "fields": [*fields, *others], "name": "shop.Value"}
    sides = [
        {"type": "struct", "fields": fields, "optional": True, "name": f"shop.{side}", "field": side}
        for side in ("before", "after")
    ]
    names = [{**text, "field": name} for name in ("connector", "table")]
    source = {"type": "struct", "fields": names, "name": "shop.Source", "field": "source"}
    return {"type": "struct", "fields": [*sides, source, {**text, "field": "op"}], "name": "shop.Envelope"}


def avro_record(forms: Mapping[str, Form], *, is_flattened: bool) -> Row:
    found: Row = avro_schema(connect_envelope(forms, is_flattened=is_flattened), "e")
    return found


def avro_value(change: Change, forms: Mapping[str, Form], *, is_flattened: bool) -> Row:
    return enveloped(change, values_of(change, forms, "avro"), is_flattened=is_flattened)


def without_logical(schema: Any) -> Any:
    """Return the schema without what makes fastavro convert values itself."""
    if isinstance(schema, list):
        return [without_logical(each) for each in schema]
    if isinstance(schema, dict):
        return {key: without_logical(value) for key, value in schema.items() if key != "logicalType"}
    return schema
