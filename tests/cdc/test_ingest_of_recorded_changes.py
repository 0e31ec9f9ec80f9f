"""What a real Debezium wrote is ingested: after each step the table has the rows that the database said it had."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from storage_lib import DynamicTable, InvalidInputError, MemoryCatalog
from tests.support.fake_environment import fake_environment
from tests.support.raw_topic import RawTopic
from tests.support.recorded_changes import RecordedRecord, recorded, recorded_states

_TYPES = {
    "bigint": pa.int64(),
    "integer": pa.int32(),
    "text": pa.string(),
    "numeric(10,2)": pa.decimal128(10, 2),
    "timestamp with time zone": pa.timestamp("us", "UTC"),
    "date": pa.date32(),
    "jsonb": pa.string(),
    "bytea": pa.binary(),
    "character varying(4000)": pa.string(),
}
_MODES = {
    "json": "debezium-json",
    "json-schema": "debezium-json-schema",
    "flattened-json": "debezium-flattened-json",
    "flattened-json-schema": "debezium-flattened-json-schema",
}
_UNCHANGED = "__debezium_unavailable_value"


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize("batch_size", [1, 1000])
@pytest.mark.parametrize("name", ["orders_whole", "toasted", "appended"])
def test_after_each_step_the_table_has_the_rows_of_the_database(name: str, mode: str, batch_size: int) -> None:
    table, topic = table_of(name, ["id"] if name != "appended" else []), RawTopic(batch_size=batch_size)
    records, sent = recorded(mode, name), 0

    for state in recorded_states(name):
        while sent < len(records) and (is_of_snapshot(records[sent]) or lsn(records, sent) < state.lsn):
            topic.tell(records[sent].key, records[sent].value)
            sent += 1
        if any("truncate" in each or "type numeric(12,4)" in each for each in state.step):
            break  # a flattened record can't say the former, and one without a schema not the latter
        topic.ingest(table, format=_MODES[mode], on_truncate="apply")

        compared = [each for each in table.arrow_schema.names if each in state.types]
        assert rows_of(table, compared) == expected(state.rows, compared), state.step


@pytest.mark.parametrize("has_schema", [False, True])
def test_a_deletion_that_is_flattened_to_the_text_null_deletes_its_key(*, has_schema: bool) -> None:
    table, topic = table_of("toasted", ["id"]), RawTopic()
    for record in recorded("flattened-json-tombstones", "toasted"):
        value = record.value
        if value is not None and has_schema:
            schema = recorded("flattened-json-schema", "toasted")[0].value
            assert schema is not None
            head = schema[: schema.index(b',"payload":')]
            value = head + b',"payload":' + value + b"}"
        topic.tell(record.key, value)

    topic.ingest(table, format=f"debezium-flattened-json{'-schema' if has_schema else ''}")

    assert table.to_arrow()["id"].to_pylist() == [2]
    assert b"null" in [record.value for record in recorded("flattened-json-tombstones", "toasted")]


@pytest.mark.parametrize("mode", ["json", "json-schema", "flattened-json", "json-microseconds"])
def test_an_unchanged_hstore_that_is_written_as_json_keeps_its_value(mode: str) -> None:
    """Debezium's default, ``hstore.handling.mode=json``, writes a map of the placeholder to itself, as text."""
    catalog = MemoryCatalog(environment=fake_environment())
    columns = pa.schema([("id", pa.int64()), ("an_hstore", pa.string())])
    table = catalog.create_table("shop.toasted", columns, primary_key=["id"], options={"log.system": "none"})
    placeholder = "(not sent)" if "microseconds" in mode else _UNCHANGED
    records, topic, stored = recorded(mode, "toasted"), RawTopic(), set()

    for record in records:
        topic.tell(record.key, record.value)
        options = {"debezium.unavailable-value-placeholder": placeholder}
        topic.ingest(table, format=_MODES.get(mode, "debezium-json"), on_truncate="apply", options=options)
        stored.update(table.to_arrow()["an_hstore"].to_pylist())

    unchanged = json.dumps({placeholder: placeholder}, separators=(",", ":"))
    assert json.dumps(unchanged).encode() in b"".join(each.value or b"" for each in records)
    assert '{"a":"1"}' in stored
    assert unchanged not in stored


def test_a_moved_row_whose_unchanged_value_is_left_out_is_refused_by_name() -> None:
    table, topic = table_of("orders", ["id"]), RawTopic()
    for record in recorded("json", "orders"):
        topic.tell(record.key, record.value)

    with pytest.raises(InvalidInputError, match=r"offset \d+, key b'{\"id\":5}', column 'note'.*has not changed"):
        topic.ingest(table)
    found = topic.ingest(table, on_reject="skip", on_truncate="ignore")

    assert found.skipped_count == 1
    assert 5 not in table.to_arrow()["id"].to_pylist()


def test_a_value_of_more_digits_than_the_column_has_is_refused_where_the_record_says_so() -> None:
    table, topic = table_of("orders_whole", ["id"]), RawTopic()
    for record in recorded("json-schema", "orders_whole"):
        topic.tell(record.key, record.value)

    with pytest.raises(InvalidInputError, match=r"offset 13, .*column 'price': can't be applied: .*DECIMAL"):
        topic.ingest(table, format="debezium-json-schema", schema_change="ignore")


@pytest.mark.parametrize("mode", ["json", "json-schema"])
def test_a_table_without_a_key_takes_whole_rows_and_refuses_others(mode: str) -> None:
    table, topic = table_of("keyless", []), RawTopic()
    for record in recorded(mode, "keyless"):
        topic.tell(record.key, record.value)

    topic.ingest(table, format=_MODES[mode])

    assert rows_of(table, ["a", "b"]) == expected(recorded_states("keyless")[-1].rows, ["a", "b"])
    keyed, topic = table_of("orders", []), RawTopic()
    for record in recorded(mode, "orders"):
        topic.tell(record.key, record.value)
    with pytest.raises(
        InvalidInputError, match=r"ALTER TABLE \.\.\. REPLICA IDENTITY FULL, with source.before-image=whole"
    ):
        topic.ingest(keyed, format=_MODES[mode], schema_change="ignore")


def test_a_truncation_stops_unless_an_option_says_what_to_do() -> None:
    topic = RawTopic()
    for record in recorded("json", "orders_whole"):
        topic.tell(record.key, record.value)
    rows = {}

    for setting in ("fail", "apply", "ignore"):
        table = table_of("orders_whole", ["id"])
        if setting == "fail":
            with pytest.raises(InvalidInputError, match=r"the source was truncated\. source.on-truncate=apply deletes"):
                topic.ingest(table, on_truncate=setting)
        else:
            topic.ingest(table, on_truncate=setting)
        rows[setting] = sorted(table.to_arrow()["id"].to_pylist())

    assert rows["apply"] == [9]
    assert rows["ignore"] == sorted([*rows["fail"], 9])


def table_of(name: str, keys: list[str]) -> DynamicTable:
    """Create a table of the columns that the database's table has at first and that are compared."""
    types = recorded_states(name)[0].types
    columns = pa.schema([(column, _TYPES[of]) for column, of in types.items() if of in _TYPES])
    catalog = MemoryCatalog(environment=fake_environment())
    return catalog.create_table(f"shop.{name}", columns, primary_key=keys, options={"log.system": "none"})


def is_of_snapshot(record: RecordedRecord) -> bool:
    """Whether the connector read the row when it started, which is before the first step."""
    return record.value is not None and b'op":"r"' in record.value


def lsn(records: list[RecordedRecord], index: int) -> int:
    """Return the position of a record; a tombstone has that of the deletion before it."""
    value = records[index].value
    if value is None:
        return lsn(records, index - 1)
    payload: Any = json.loads(value)
    payload = payload.get("payload", payload)
    return int(payload["source"]["lsn"] if "source" in payload else payload["__lsn"])


def rows_of(table: DynamicTable, columns: list[str]) -> list[tuple[str | None, ...]]:
    rows = [tuple(text(row[each]) for each in columns) for row in table.to_arrow().to_pylist()]
    return sorted(rows, key=repr)


def expected(rows: Any, columns: list[str]) -> list[tuple[str | None, ...]]:
    # Of a row that holds the placeholder itself nobody can tell that it has changed.
    found = [tuple("a" if row[each] == _UNCHANGED else row[each] for each in columns) for row in rows]
    return sorted(found, key=repr)


def text(value: Any) -> str | None:
    """Spell a value as PostgreSQL does, in UTC."""
    match value:
        case None:
            return None
        case bytes():
            return f"\\x{value.hex()}"
        case datetime():
            return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f").rstrip("0").rstrip(".") + "+00"
        case date():
            return value.isoformat()
        case Decimal():
            return str(value)
        case _:
            return str(value)
