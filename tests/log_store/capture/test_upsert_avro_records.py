"""Topics with the newest row of each key in Avro, written by fastavro as by other programs."""

from __future__ import annotations

import io
import json
from typing import Any, cast

import fastavro
import pyarrow as pa

from storage_lib.log_store.capture.upsert_record_decoder import UpsertRecordDecoder
from storage_lib.log_store.codec.schema_registry import SchemaRegistry
from storage_lib.schema.table_schema import TableSchema, new_table_schema
from storage_lib.schema.types.type_spelling import parse_type
from tests.support.captured_records import captured, captured_table
from tests.support.kept_schemas import KeptSchemas

KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]}
VALUE = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": ["null", "int"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tags", "type": ["null", {"type": "array", "items": "string"}]},
    ],
}
NEXT = {**VALUE, "fields": [*VALUE["fields"], {"name": "n", "type": "long"}]}


def table(**more: str) -> TableSchema:
    columns = {"id": "BIGINT", "at": "TIMESTAMP(6)", "tags": "ARRAY<STRING>", **more}
    typed = [(name, parse_type(spelling)) for name, spelling in columns.items()]
    return new_table_schema(typed, primary_keys=("id",), options={"bucket": "1"}, time_millis=0)


def decoder_of(schema: TableSchema, kept: KeptSchemas) -> UpsertRecordDecoder:
    return UpsertRecordDecoder(table=captured_table(schema), registry=cast("SchemaRegistry", kept))


def records(kept: KeptSchemas, *written: tuple[Any, dict[str, Any] | None]) -> pa.Array:
    """Encode each pair of a schema and its value; None is a null record."""
    found: list[bytes | None] = []
    for schema, value in written:
        if value is None:
            found.append(None)
            continue
        out = io.BytesIO()
        number = kept.register("theirs", json.dumps(schema))
        fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
        found.append(bytes([0]) + number.to_bytes(4, "big") + out.getvalue())
    return pa.array(found, pa.binary())


def test_values_are_rows_and_a_key_alone_deletes() -> None:
    kept = KeptSchemas()
    values = records(
        kept,
        (VALUE, {"id": 1, "at": 1_715_648_523_456, "tags": ["a"]}),
        (VALUE, None),
        (NEXT, {"id": None, "at": 0, "tags": None, "n": 5}),
    )
    keys = records(kept, *((KEY, {"id": key}) for key in (1, 2, 3)))
    decoder = decoder_of(table(n="INT"), kept)

    found = captured(decoder, values, keys)

    rows = found.rows.to_pylist()
    assert [(row["id"], str(row["at"]), row["tags"], row["n"]) for row in rows] == [
        (1, "2024-05-14 01:02:03.456000", ["a"], None),
        (2, "None", None, None),
        (3, "1970-01-01 00:00:00", None, 5),
    ]
    assert found.kinds.to_pylist() == [0, 3, 0]
    json_keys = pa.array([f'{{"id":{key}}}'.encode() for key in (1, 2, 3)], pa.binary())
    assert captured(decoder, values, json_keys).rows.equals(found.rows)


def test_a_column_that_a_schema_lacks_is_null_in_each_of_its_records() -> None:
    kept = KeptSchemas()
    values = records(kept, *((VALUE, {"id": key, "at": 0, "tags": None}) for key in (1, 2, 3)))

    found = captured(decoder_of(table(n="INT"), kept), values, values)

    assert found.rows.column("n").to_pylist() == [None, None, None]


def test_what_is_no_row_is_refused() -> None:
    kept = KeptSchemas()
    values = records(kept, (VALUE, {"id": 1, "at": 0, "tags": None}), (VALUE, None))

    found = captured(decoder_of(table(), kept), values, [b"{", b"x"])

    assert found.record_indices.tolist() == [0]
    assert [(each.record_index, "does not begin with 0" in each.reason) for each in found.refusals] == [(1, True)]
