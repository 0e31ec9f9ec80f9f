"""Bounds of transactions and heartbeats among the records of a topic change no row, and are not refused."""

from __future__ import annotations

import io
import json
from typing import Any, cast

import fastavro
import pyarrow as pa
import pytest

from storage_lib.log_store.capture.avro_record_decoder import AvroRecordDecoder
from storage_lib.log_store.capture.captured_changes import CapturedChanges
from storage_lib.log_store.capture.json_record_decoder import JsonRecordDecoder
from storage_lib.log_store.codec.schema_registry import SchemaRegistry
from storage_lib.schema.table_schema import new_table_schema
from tests.support.captured_records import captured, captured_table

BEGIN = {"status": "BEGIN", "id": "571", "event_count": None, "data_collections": None, "ts_ms": 1}
END = {**BEGIN, "status": "END", "event_count": 1}
BEAT = {"ts_ms": 1_700_000_000_000}
ROW = {"id": 7, "status": "BEGIN"}
ENVELOPE = {"before": None, "after": ROW, "op": "c"}
TABLE = captured_table(
    new_table_schema(
        pa.schema([("id", pa.int64()), ("status", pa.string())]),
        primary_keys=("id",),
        options={"bucket": "1"},
        time_millis=0,
    )
)
OF_ROW = [{"field": "id", "type": "int64"}, {"field": "status", "type": "string", "optional": True}]
OF_ENVELOPE = [
    {"field": "before", "type": "struct", "fields": OF_ROW, "optional": True},
    {"field": "after", "type": "struct", "fields": OF_ROW, "optional": True},
    {"field": "op", "type": "string"},
]
KEY = '{"id":7}'


def text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def with_schema(payload: object, name: str, fields: object) -> str:
    return text({"schema": {"type": "struct", "fields": fields, "name": name}, "payload": payload})


def messages_with_schema() -> list[str]:
    of_bound = [
        {"field": "status", "type": "string"},
        {"field": "id", "type": "string"},
        {"field": "event_count", "type": "int64", "optional": True},
    ]
    bound, beat = "io.debezium.connector.common.TransactionMetadataValue", "io.debezium.connector.common.Heartbeat"
    return [
        with_schema(BEGIN, bound, of_bound),
        with_schema(BEAT, beat, [{"field": "ts_ms", "type": "int64"}]),
        with_schema(END, bound, of_bound),
    ]


def check(changes: CapturedChanges) -> None:
    """Check that only the row between the messages was read."""
    assert changes.rows.to_pylist() == [ROW]
    assert (changes.record_indices.tolist(), changes.refusals, changes.truncations.tolist()) == ([1], (), [])


def test_messages_without_schemas_are_passed_over_among_envelopes() -> None:
    values = [text(BEGIN), text(ENVELOPE), text(BEAT), text(END)]

    check(captured(JsonRecordDecoder(table=TABLE), values, [KEY] * 4))


@pytest.mark.parametrize("is_flattened", [False, True])
def test_the_names_of_schemas_tell_messages(is_flattened: bool) -> None:  # noqa: FBT001
    row = with_schema(ROW, "x.Value", OF_ROW) if is_flattened else with_schema(ENVELOPE, "x.Envelope", OF_ENVELOPE)
    first, *others = messages_with_schema()
    decoder = JsonRecordDecoder(table=TABLE, has_schema=True, is_flattened=is_flattened)

    changes = captured(decoder, [first, row, *others], [KEY] * 4)

    check(changes)
    assert [[*each.columns] for each in changes.schemas] == [["id", "status"]]


def test_rows_without_schema_and_envelope_are_never_taken_for_messages() -> None:
    changes = captured(JsonRecordDecoder(table=TABLE, is_flattened=True), [text({"status": "BEGIN", "id": 7})])

    assert changes.rows.to_pylist() == [ROW]


@pytest.mark.parametrize("is_flattened", [False, True])
def test_the_names_of_records_of_avro_tell_messages(is_flattened: bool) -> None:  # noqa: FBT001
    row: dict[str, Any] = {
        "type": "record",
        "name": "Value",
        "namespace": "x",
        "fields": [{"name": "id", "type": "long"}, {"name": "status", "type": ["null", "string"]}],
    }
    sides = [{"name": "before", "type": ["null", row]}, {"name": "after", "type": ["null", "x.Value"]}]
    envelope = {"type": "record", "name": "x.Envelope", "fields": [*sides, {"name": "op", "type": "string"}]}
    bound = {
        "type": "record",
        "name": "TransactionMetadataValue",
        "namespace": "io.debezium.connector.common",
        "fields": [{"name": "status", "type": "string"}, {"name": "id", "type": "string"}],
    }
    schemas = {1: row if is_flattened else envelope, 2: bound}

    class Registry:
        def schema(self, number: int) -> str:
            return json.dumps(schemas[number])

    def written(number: int, value: dict[str, Any]) -> bytes:
        into = io.BytesIO()
        fastavro.schemaless_writer(into, fastavro.parse_schema(schemas[number]), value)
        return b"\0" + number.to_bytes(4, "big") + into.getvalue()

    decoder = AvroRecordDecoder(table=TABLE, registry=cast("SchemaRegistry", Registry()), is_flattened=is_flattened)
    values = [written(2, BEGIN), written(1, ROW if is_flattened else ENVELOPE), written(2, END)]

    check(captured(decoder, values, [KEY] * 3))
