"""Damaged records of a real Debezium: the decoders refuse them one by one, and decode the others as if alone."""

from __future__ import annotations

import random
from typing import Any, cast

import pyarrow as pa
import pytest

from storage_lib.log_store.capture import json_record_decoder
from storage_lib.log_store.capture.avro_record_decoder import AvroRecordDecoder
from storage_lib.log_store.capture.capture_decoder import CaptureDecoder
from storage_lib.log_store.capture.json_record_decoder import JsonRecordDecoder
from storage_lib.log_store.capture.json_rows import JsonRows, read_rows
from storage_lib.log_store.capture.upsert_record_decoder import UpsertRecordDecoder
from storage_lib.log_store.codec.schema_registry import SchemaRegistry
from storage_lib.schema.table_schema import new_table_schema
from tests.fuzz.damage import damaged
from tests.support.captured_records import captured, captured_table
from tests.support.recorded_changes import recorded, recorded_schemas

_COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("n", pa.int32()),
        ("a_text", pa.string()),
        ("a_bytea", pa.binary()),
        ("texts", pa.list_(pa.string())),
        ("ints", pa.list_(pa.int32())),
    ]
)
_TABLE = captured_table(new_table_schema(_COLUMNS, primary_keys=("id",), options={"bucket": "1"}, time_millis=0))


class RecordedRegistry:
    """The schemas that the records were written with."""

    def __init__(self) -> None:
        self._schemas = recorded_schemas()

    def schema(self, number: int) -> str:
        from storage_lib.errors import NotFoundError

        if number not in self._schemas:
            message = f"no schema {number}"
            raise NotFoundError(message)
        return self._schemas[number]


_REGISTRY = cast("SchemaRegistry", RecordedRegistry())
_DECODERS: dict[str, CaptureDecoder] = {
    "json": JsonRecordDecoder(table=_TABLE),
    "json-schema": JsonRecordDecoder(table=_TABLE, has_schema=True),
    "flattened-json": JsonRecordDecoder(table=_TABLE, is_flattened=True),
    "flattened-json-schema": JsonRecordDecoder(table=_TABLE, has_schema=True, is_flattened=True),
    "avro": AvroRecordDecoder(table=_TABLE, registry=_REGISTRY),
    "flattened-avro": AvroRecordDecoder(table=_TABLE, registry=_REGISTRY, is_flattened=True),
    "upsert": UpsertRecordDecoder(table=_TABLE),
    "upsert-avro": UpsertRecordDecoder(table=_TABLE, registry=_REGISTRY),
}


@pytest.mark.parametrize("name", _DECODERS)
@pytest.mark.parametrize("seed", range(6))
def test_a_damaged_record_harms_no_other(name: str, seed: int) -> None:
    chance = random.Random(f"{name} {seed}")  # noqa: S311  chance, not secrets
    decoder = _DECODERS[name]
    records = recorded({"upsert": "flattened-json", "upsert-avro": "flattened-avro"}.get(name, name), "toasted")
    parts = [(each.key, each.value) for each in records]
    hurt = set(chance.sample(range(len(parts)), chance.randint(1, 4)))
    for index in hurt:
        key, value = parts[index]
        parts[index] = (
            damaged(key, chance) if key is not None and chance.random() < 0.3 else key,
            damaged(value, chance) if value is not None else value,
        )

    together = captured(decoder, [value for _, value in parts], [key for key, _ in parts])

    refused = {each.record_index for each in together.refusals}
    for index, (key, value) in enumerate(parts):
        alone = captured(decoder, [value], [key])
        rows = together.between(index, index + 1)
        if index - 1 not in hurt and value is not None:
            assert rows.rows.to_pylist() == alone.rows.to_pylist(), index
            assert rows.kinds.to_pylist() == alone.kinds.to_pylist(), index
            assert (index in refused) == bool(alone.refusals), index
    assert all(each.reason for each in together.refusals)


def test_broken_json_is_found_without_decoding_the_others_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Halving found each of them, by ten attempts at their neighbours: 20 in 2,000 took a second."""
    decodes: list[int] = []

    def counted(texts: pa.Array, *rest: Any) -> JsonRows:
        decodes.append(len(texts))
        return read_rows(texts, *rest)

    monkeypatch.setattr(json_record_decoder, "read_rows", counted)
    good = [f'{{"op": "c", "after": {{"id": {number}}}}}'.encode() for number in range(200)]
    values = [value for each in good for value in (each, each[:-1])] + [b"7", b"null", b'"text"']

    changes = captured(_DECODERS["json"], values, [None] * len(values))

    assert changes.rows["id"].to_pylist() == list(range(200))
    refused = {each.record_index for each in changes.refusals}
    assert refused == {*range(1, 400, 2), 400, 401, 402}
    assert len(decodes) < 20
