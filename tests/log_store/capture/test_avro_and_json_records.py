"""The same changes of a real PostgreSQL, recorded in Avro and in JSON with schemas, decode to the same."""

from __future__ import annotations

from typing import cast

import numpy as np
import pyarrow as pa
import pytest

from storage_lib.log_store.capture.avro_record_decoder import AvroRecordDecoder
from storage_lib.log_store.capture.captured_changes import CapturedChanges
from storage_lib.log_store.capture.json_record_decoder import JsonRecordDecoder
from storage_lib.log_store.codec.schema_registry import SchemaRegistry
from storage_lib.schema.table_schema import TableSchema, new_table_schema
from tests.support.captured_records import captured, captured_table
from tests.support.recorded_changes import recorded, recorded_schemas

_COLUMNS: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "item": pa.string(),
    "article": pa.string(),
    "note": pa.string(),
    "price": pa.decimal128(12, 4),
    "at": pa.timestamp("us", "UTC"),
    "day": pa.date32(),
    "qty": pa.int32(),
    "n": pa.int32(),
    "a_text": pa.string(),
    "a_bytea": pa.binary(),
    "texts": pa.list_(pa.string()),
    "ints": pa.list_(pa.int32()),
}
_TABLES = {
    "orders": ("id", "item", "article", "note", "price", "at", "day", "qty"),
    "orders_whole": ("id", "item", "article", "note", "price", "at", "day", "qty"),
    "toasted": ("id", "n", "a_text", "a_bytea", "texts", "ints"),
}


class RecordedRegistry:
    """The schemas that the records were written with."""

    def schema(self, number: int) -> str:
        return recorded_schemas()[number]


@pytest.mark.parametrize("name", _TABLES)
@pytest.mark.parametrize("is_flattened", [False, True])
def test_both_tell_the_same_rows_and_leave_out_the_same_values(name: str, is_flattened: bool) -> None:  # noqa: FBT001
    table, kind = captured_table(_schema(name)), "flattened-" if is_flattened else ""
    avro, json = recorded(f"{kind}avro", name), recorded(f"{kind}json-schema", name)
    registry = cast("SchemaRegistry", RecordedRegistry())

    of_avro = captured(
        AvroRecordDecoder(table=table, registry=registry, is_flattened=is_flattened),
        [each.value for each in avro],
        [each.key for each in avro],
    )
    of_json = captured(
        JsonRecordDecoder(table=table, has_schema=True, is_flattened=is_flattened),
        [each.value for each in json],
        [each.key for each in json],
    )

    assert of_avro.rows.to_pylist() == of_json.rows.to_pylist()
    assert of_avro.kinds.to_pylist() == of_json.kinds.to_pylist()
    assert _told(of_avro) == _told(of_json)
    assert [each.columns.keys() for each in of_avro.schemas] == [each.columns.keys() for each in of_json.schemas]
    assert len(of_avro.schemas) == (4 if name.startswith("orders") else 1)


@pytest.mark.parametrize("form", ["avro", "json-schema"])
def test_a_truncate_counts_whatever_the_columns_of_the_source_are(form: str) -> None:
    table = captured_table(_schema("orders", qty=pa.list_(pa.int32())))
    records = recorded(form, "orders")
    registry = cast("SchemaRegistry", RecordedRegistry())
    decoder = (
        AvroRecordDecoder(table=table, registry=registry)
        if form == "avro"
        else JsonRecordDecoder(table=table, has_schema=True)
    )

    changes = captured(decoder, [each.value for each in records], [each.key for each in records])

    assert {each.reason.partition(",")[0] for each in changes.refusals} == {"column 'qty' is ARRAY<INT>"}
    assert changes.truncations.tolist() == [20]
    assert 20 not in {each.record_index for each in changes.refusals}


def _schema(name: str, **others: pa.DataType) -> TableSchema:
    columns = pa.schema([(column, {**_COLUMNS, **others}[column]) for column in _TABLES[name]])
    return new_table_schema(columns, primary_keys=("id",), options={"bucket": "1"}, time_millis=0)


def _told(changes: CapturedChanges) -> object:
    def places(masks: object) -> dict[str, list[int]]:
        return {name: np.flatnonzero(mask).tolist() for name, mask in sorted(dict(masks).items())}  # type: ignore[call-overload]

    return (
        places(changes.unavailable),
        places(changes.absent),
        changes.truncations.tolist(),
        [(each.record_index, each.column, each.reason) for each in changes.refusals],
    )
