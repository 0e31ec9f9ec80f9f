"""A table follows the columns of its source: recorded changes of a real PostgreSQL, and crashes between the steps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest

from storage_lib import DynamicTable, InvalidInputError, MemoryCatalog
from storage_lib.log_store.conversion.avro_value_type import value_type as avro_type
from storage_lib.log_store.conversion.captured_value_type import TEXT
from storage_lib.log_store.conversion.connect_schema import value_type as connect_type
from tests.support.fake_environment import fake_environment
from tests.support.raw_topic import RawTopic
from tests.support.recorded_changes import recorded

_MODES = {"json-schema": "debezium-json-schema", "flattened-json-schema": "debezium-flattened-json-schema"}


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize("batch_size", [1, 1000])
def test_new_columns_and_wider_types_arrive_with_the_first_row_that_has_them(mode: str, batch_size: int) -> None:
    table, topic = _table(), RawTopic(batch_size=batch_size)
    for record in recorded(mode, "orders_whole"):
        if record.value is None or b'"op":"t"' not in record.value:
            topic.tell(record.key, record.value)

    topic.ingest(table, format=_MODES[mode])

    found = table.refresh()
    types = {field.name: str(field.type) for field in found.schema.fields}
    assert types["price"] == "DECIMAL(12, 4)"
    assert types["qty"] == "INT"
    rows: dict[int, dict[str, Any]] = {row["id"]: row for row in found.to_arrow().to_pylist()}
    assert (rows[4]["qty"], rows[4]["article"], rows[4]["item"]) == (7, "pot", "pot")
    assert rows[7]["price"] == Decimal("1.2345")
    assert (rows[9]["article"], rows[9]["item"], rows[9]["day"]) == ("mug", None, None)
    # Both new columns came at once, the wider price later.
    assert found.inspect.system_table("schemas")["schema_id"].to_pylist() == [0, 1, 2]


@pytest.mark.parametrize("stop_after", range(1, 12))
def test_after_a_crash_at_any_record_the_rest_is_read_under_the_right_schema(stop_after: int) -> None:
    records = [each for each in recorded("json-schema", "orders_whole") if each.value and b'"op":"t"' not in each.value]
    whole, halved, first, second = _table(), _table(), RawTopic(), RawTopic()
    for record in records:
        first.tell(record.key, record.value)
    first.ingest(whole, format="debezium-json-schema")

    for record in records[:stop_after]:
        second.tell(record.key, record.value)
    second.ingest(halved, format="debezium-json-schema")
    for record in records[stop_after:]:
        second.tell(record.key, record.value)
    second.ingest(halved.refresh(), format="debezium-json-schema")

    assert _sorted(halved.refresh()) == _sorted(whole.refresh())


def test_fail_stops_before_the_first_record_of_another_shape_and_ignore_leaves_it_out() -> None:
    topic = RawTopic()
    for number, more in ((1, {}), (2, {"qty": 5})):
        topic.tell(_key(number), _value({"id": number, **more}))
    failing, ignoring = _small_table(), _small_table()

    for _ in range(2):
        with pytest.raises(InvalidInputError, match=r"offset 1: the source has a new column 'qty' \(INT\)"):
            topic.ingest(failing, format="debezium-json-schema", schema_change="fail")
    topic.ingest(ignoring, format="debezium-json-schema", schema_change="ignore")

    assert failing.to_arrow().to_pylist() == [{"id": 1}]
    assert sorted(row["id"] for row in ignoring.to_arrow().to_pylist()) == [1, 2]
    assert ignoring.refresh().arrow_schema.names == ["id"]


def test_a_key_keeps_its_type_and_what_does_not_fit_is_refused() -> None:
    catalog = MemoryCatalog(environment=fake_environment())
    columns = pa.schema([("id", pa.int16())])
    table = catalog.create_table("shop.small", columns, primary_key=["id"], options={"log.system": "none"})
    topic = RawTopic()
    for number in (1, 70000):
        topic.tell(_key(number), _value({"id": number}))

    with pytest.raises(InvalidInputError, match=r"offset 1, .*column 'id'"):
        topic.ingest(table, format="debezium-json-schema")

    assert table.to_arrow().to_pylist() == [{"id": 1}]
    assert table.refresh().schema.id == 0


def test_a_column_that_another_process_has_added_meanwhile_is_not_added_again() -> None:
    from storage_lib import AddColumn

    topic, table = RawTopic(), _small_table()
    table.alter(AddColumn("qty", "BIGINT"))
    topic.tell(_key(1), _value({"id": 1, "qty": 5}))

    topic.ingest(table, format="debezium-json-schema")

    assert table.refresh().to_arrow().to_pylist() == [{"id": 1, "qty": 5}]


@pytest.mark.parametrize("first", [[], [1]], ids=["an empty table", "older rows"])
def test_a_default_of_the_source_that_older_rows_may_have_is_a_warning(
    caplog: pytest.LogCaptureFixture, first: list[int]
) -> None:
    table, topic = _small_table(), RawTopic()
    for number in first:
        topic.tell(_key(number), _value({"id": number}))
    if first:
        topic.ingest(table, format="debezium-json-schema")
    topic.tell(_key(2), _value({"id": 2, "qty": 5, "size": 1}, {"qty": 0}))

    topic.ingest(table.refresh(), format="debezium-json-schema")

    warned = [message for message in caplog.messages if "has the default" in message]
    assert [("'qty'" in each, "the default 0" in each) for each in warned] == [(True, True)] * len(first)
    rows = table.refresh().to_arrow().sort_by("id").to_pylist()
    assert rows == [
        *({"id": number, "qty": None, "size": None} for number in first),
        {"id": 2, "qty": 5, "size": 1},
    ]


@pytest.mark.parametrize(("default", "found"), [(None, None), (5, 5), (0, 0), (False, False), ("", "")], ids=repr)
def test_the_schemas_of_records_tell_the_default_of_a_column(default: object, found: object) -> None:
    written = {"field": "c", "type": "string", "optional": True}
    connect = connect_type(
        {"type": "struct", "fields": [written if default is None else written | {"default": default}]}
    )
    avro = avro_type(
        {"type": "record", "name": "Value", "fields": [{"name": "c", "type": ["null", "string"], "default": default}]}
    )

    assert [dict(each.fields)["c"].default for each in (connect, avro)] == [found, found]
    assert dict(connect.fields)["c"] == TEXT, "a default is no part of a type"


def _table() -> DynamicTable:
    columns = pa.schema(
        [
            ("id", pa.int64()),
            ("item", pa.string()),
            ("note", pa.string()),
            ("price", pa.decimal128(10, 2)),
            ("at", pa.timestamp("us", "UTC")),
            ("day", pa.date32()),
            ("t", pa.time32("ms")),
        ]
    )
    catalog = MemoryCatalog(environment=fake_environment())
    return catalog.create_table("shop.orders", columns, primary_key=["id"], options={"log.system": "none"})


def _small_table() -> DynamicTable:
    catalog = MemoryCatalog(environment=fake_environment())
    columns = pa.schema([("id", pa.int32())])
    return catalog.create_table("shop.small", columns, primary_key=["id"], options={"log.system": "none"})


def _key(number: int) -> bytes:
    return json.dumps({"id": number}).encode()


def _value(row: dict[str, int], defaults: Mapping[str, int] = MappingProxyType({})) -> bytes:
    fields: list[dict[str, Any]] = [{"field": name, "type": "int32", "optional": name != "id"} for name in row]
    for field in fields:
        if field["field"] in defaults:
            field["default"] = defaults[field["field"]]
    sides = [{"field": side, "type": "struct", "fields": fields, "optional": True} for side in ("before", "after")]
    schema = {"type": "struct", "fields": [*sides, {"field": "op", "type": "string", "optional": False}]}
    return json.dumps({"schema": schema, "payload": {"before": None, "after": row, "op": "c"}}).encode()


def _sorted(table: DynamicTable) -> list[str]:
    return sorted(map(repr, table.to_arrow().to_pylist()))


@pytest.mark.parametrize("connector", ["postgresql", "oracle"])
def test_an_unchanged_value_of_a_renamed_column_is_refused_unless_the_source_leaves_out_nulls(connector: str) -> None:
    catalog = MemoryCatalog(environment=fake_environment())
    columns = {"id": "INT", "note": "STRING", "n": "INT"}
    table = catalog.create_table("shop.notes", columns, primary_key=["id"], options={"log.system": "none"})
    topic = RawTopic()
    topic.tell(_key(1), _change(connector, {"id": 1, "note": "long", "n": 1}))
    topic.ingest(table, format="debezium-json-schema")
    unchanged = "__debezium_unavailable_value"
    topic.tell(_key(1), _change(connector, {"id": 1, "text": unchanged, "n": 2}))
    topic.tell(_key(1), _change(connector, {"id": 1, "text": "longer", "n": 3}))
    topic.tell(_key(1), _change(connector, {"id": 1, "text": unchanged, "n": 4}))

    result = topic.ingest(table, format="debezium-json-schema", on_reject="skip")

    (row,) = table.refresh().to_arrow().to_pylist()
    assert (row["note"], row["text"], row["n"]) == ("long", "longer", 4)
    assert result.skipped_count == (1 if connector == "postgresql" else 0)


def _change(connector: str, row: dict[str, Any]) -> bytes:
    fields = [
        {"field": name, "type": "string" if name in {"note", "text"} else "int32", "optional": True} for name in row
    ]
    sides = [{"field": side, "type": "struct", "fields": fields, "optional": True} for side in ("before", "after")]
    source = {"field": "source", "type": "struct", "fields": [{"field": "connector", "type": "string"}]}
    schema = {"type": "struct", "fields": [*sides, {"field": "op", "type": "string", "optional": False}, source]}
    payload = {"before": None, "after": row, "op": "u", "source": {"connector": connector}}
    return json.dumps({"schema": schema, "payload": payload}).encode()
