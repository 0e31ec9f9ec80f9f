"""Columns that are filled from the metadata of records, and what happens where a record has none that fits."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

import pyarrow as pa
import pytest

from storage_lib import CorruptFileError, DynamicTable, InvalidInputError, MemoryCatalog, reingest
from storage_lib.log_store.capture.avro_record_decoder import AvroRecordDecoder
from storage_lib.log_store.capture.capture_decoder import CaptureDecoder
from storage_lib.log_store.codec.schema_registry import SchemaRegistry
from storage_lib.log_store.external.external_format import ExternalFormat
from storage_lib.log_store.external.external_topic import ExternalTopic
from storage_lib.log_store.external.source_metadata import metadata_columns, metadata_of
from tests.support.captured_records import captured
from tests.support.fake_environment import fake_environment
from tests.support.raw_topic import NAME, RawTopic
from tests.support.recorded_changes import recorded, recorded_schemas, recorded_states

ROW = {"id": "BIGINT NOT NULL", "item": "STRING"}
ORDERED = {"sequence.field": "ordinal", "compaction.keep-deletes": "true"}
LSN = "ordinal = value.source.lsn"
_MODES = {
    "json": "debezium-json",
    "json-schema": "debezium-json-schema",
    "flattened-json": "debezium-flattened-json",
    "flattened-json-schema": "debezium-flattened-json-schema",
    "avro": "debezium-avro",
    "flattened-avro": "debezium-flattened-avro",
}


def table_of(columns: Mapping[str, str], options: Mapping[str, str] | None = None, *, key: bool = True) -> DynamicTable:
    catalog = MemoryCatalog(environment=fake_environment())
    of_table = {"log.system": "none", **(options or {})}
    return catalog.create_table("shop.items", columns, primary_key=["id"] if key else [], options=of_table)


def ordered_table(of_ordinal: str = "BIGINT") -> DynamicTable:
    return table_of({**ROW, "ordinal": of_ordinal}, ORDERED)


def change(op: str, key: int, item: str | None, lsn: object, **source: object) -> bytes:
    row = None if op == "d" else {"id": key, "item": item}
    before = {"id": key, "item": None} if op == "d" else None
    of_source = {"connector": "postgresql", "lsn": lsn, **source}
    return json.dumps({"before": before, "after": row, "op": op, "source": of_source, "ts_ms": 1}).encode()


def key_of(key: int) -> bytes:
    return json.dumps({"id": key}).encode()


def rows_of(table: DynamicTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


# What records say


@pytest.mark.parametrize("mode", _MODES)
def test_each_change_has_the_metadata_of_its_record(mode: str) -> None:
    columns = {
        "place": "BIGINT",
        "id": "BIGINT NOT NULL",
        "lsn": "BIGINT",
        "item": "STRING",
        "written": "TIMESTAMP_LTZ(3)",
        "op": "STRING",
        "of_table": "STRING",
    }
    metadata = (
        "place = offset, lsn = value.source.lsn, written = value.source.timestamp, op = value.op, "
        "of_table = value.source.table"
    )
    records, plain = recorded(mode, "orders_whole"), recorded("json", "orders_whole")
    if mode.startswith("flattened"):
        plain = [each for each in plain if not (each.value and json.loads(each.value)["op"] == "t")]

    changes = captured(decoder_of(mode, columns, metadata), [each.value for each in records], [r.key for r in records])

    rows = pa.Table.from_batches([changes.rows]).to_pylist()
    told = {index for index, each in enumerate(plain) if each.value and json.loads(each.value)["op"] in "crud"}
    assert {row["place"] for row in rows} >= told
    for row in rows:
        value = plain[row["place"]].value
        if value is None:
            assert mode.startswith("flattened")
            continue
        source = json.loads(value)["source"]
        assert (row["op"], row["of_table"]) == (json.loads(value)["op"], "orders_whole")
        assert row["lsn"] > 0
        if row["op"] != "r":  # each connector has its own snapshot
            assert (row["lsn"], row["written"]) == (source["lsn"], datetime.fromtimestamp(source["ts_ms"] / 1000, UTC))


def decoder_of(mode: str, columns: Mapping[str, str], metadata: str) -> CaptureDecoder:
    table = table_of(columns)
    of_format = "debezium-json" if "avro" in mode else _MODES[mode]
    options = {"topic": NAME, "log.format": of_format, "source.metadata": metadata}
    topic = ExternalTopic.parse(options, table.arrow_schema)
    decoder = topic.captured(RawTopic(), table.schema).decoder
    if "avro" not in mode:
        return decoder
    registry = cast("SchemaRegistry", RecordedRegistry(recorded_schemas()))
    return AvroRecordDecoder(table=decoder.table, registry=registry, is_flattened="flattened" in mode)


@dataclass(eq=False)
class RecordedRegistry:
    """The registry's schemas, as recorded."""

    schemas: Mapping[int, str]

    def schema(self, number: int) -> str:
        """Return a schema by its id."""
        return self.schemas[number]


@pytest.mark.parametrize("mode", ["json", "json-schema", "flattened-json", "flattened-json-schema"])
@pytest.mark.parametrize("seed", range(3))
def test_real_records_give_the_rows_of_the_database_in_whatever_order_they_are_read(mode: str, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  chance, not secrets
    table = table_of({"id": "BIGINT NOT NULL", "note": "STRING", "ordinal": "BIGINT"}, ORDERED)
    states = recorded_states("orders_whole")
    until = next(i for i, each in enumerate(states) if any("truncate" in word for word in each.step))
    state = states[chance.randrange(1, until)]
    records = [each for each in recorded(mode, "orders_whole") if belongs(each.value, state.lsn)]
    chance.shuffle(records)
    topic = RawTopic(partition_count=3, batch_size=chance.choice([1, 4, 1000]))
    for record in records:
        topic.tell(record.key, record.value, chance.randrange(3))

    commit_size = chance.choice([1, 99])
    topic.ingest(table, format=_MODES[mode], metadata=LSN, schema_change="ignore", rows_per_commit=commit_size)

    expected = sorted((int(row["id"] or 0), row["note"]) for row in state.rows)
    assert [row[:2] for row in rows_of(table)] == expected


def belongs(value: bytes | None, lsn: int) -> bool:
    """Return whether a record is of the snapshot, or of a change before a place in the database's log."""
    if value is None:
        return False
    record = json.loads(value)
    payload = record.get("payload", record)
    op, of = (payload["op"], payload["source"]["lsn"]) if "source" in payload else (payload["__op"], payload["__lsn"])
    return bool(op == "r" or of < lsn)


# Refusals


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ("ordinal", "write column = metadata"),
        ("ordinal = offset, ordinal = partition", "each column once"),
        ("ordinal = value.source.lns", "no metadata 'value.source.lns'; did you mean 'value.source.lsn'"),
        ("ordinal = headers", "no metadata 'headers'.*Use one of topic, partition"),
    ],
)
def test_an_option_that_names_no_metadata_is_refused(metadata: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        metadata_of(metadata)


@pytest.mark.parametrize(
    ("metadata", "options", "problem"),
    [
        ("ordinals = offset", {}, "column 'ordinals', which the table does not have; did you mean 'ordinal'"),
        ("id = offset", {}, "column 'id', which is in the primary key"),
        ("day = value.source.lsn", {}, "column 'day' is DATE, which can't hold value.source.lsn; make it BIGINT"),
        (LSN, {"format": "upsert-kafka"}, "upsert-kafka have no value.source.lsn; use topic, partition"),
        (LSN, {"merge-engine": "aggregation"}, "merge-engine=aggregation, so a deletion has to repeat its row"),
        (LSN, {"sequence.field": "ordinal,item"}, "but not all of its columns"),
        (LSN, {"sequence.field": "ordinal", "merge-engine": "partial-update"}, "use merge-engine=deduplicate"),
        (LSN, {"sequence.field": "ordinal", "sequence.field.sort-order": "descending"}, "the oldest row wins"),
        ("ordinal = offset", {"sequence.field": "ordinal"}, "says nothing about records of other partitions"),
    ],
)
def test_a_table_that_can_not_be_filled_so_is_refused(metadata: str, options: dict[str, str], problem: str) -> None:
    of_format = ExternalFormat(options.get("format", "debezium-json"))
    of_table = {key: value for key, value in options.items() if key != "format"}
    table = table_of({**ROW, "ordinal": "BIGINT", "day": "DATE"}, of_table)

    with pytest.raises(InvalidInputError, match=problem):
        metadata_columns(NAME, of_format, metadata_of(metadata), table.schema)


def test_a_table_without_a_key_is_refused_unless_it_takes_insertions_only() -> None:
    columns = {"item": "STRING", "place": "BIGINT"}
    topic = RawTopic()
    topic.tell(None, json.dumps({"before": None, "after": {"item": "tea"}, "op": "c"}).encode())
    log = table_of(columns, {"write-mode": "append-only"}, key=False)

    topic.ingest(log, metadata="place = offset")
    with pytest.raises(InvalidInputError, match="no primary key, so a deletion has to repeat its row"):
        topic.ingest(table_of(columns, key=False), metadata="place = offset")

    assert rows_of(log) == [("tea", 0)]


@pytest.mark.parametrize(
    ("of_ordinal", "metadata", "source", "problem"),
    [
        ("INT", LSN, {"lsn": 1 << 40}, "column 'ordinal': can't be applied: .*1099511627776 does not fit INT"),
        ("BIGINT", LSN, {"lsn": None}, "column 'ordinal': can't be applied: it has no value.source.lsn"),
        ("BIGINT", LSN, {}, "it has no value.source.lsn, and sequence.field has column 'ordinal'"),
        ("TIMESTAMP_LTZ(3)", "ordinal = value.source.ts_us", {"ts_us": 1001}, "column 'ordinal'"),
        ("BIGINT", "ordinal = value.source.ts_ms", {"lsn": 1}, "it has no value.source.ts_ms"),
    ],
)
def test_a_record_without_metadata_that_fits_is_refused(
    of_ordinal: str, metadata: str, source: dict[str, object], problem: str
) -> None:
    table, topic = ordered_table(of_ordinal), RawTopic()
    value = {"before": None, "after": {"id": 1, "item": "tea"}, "op": "c", "source": {"connector": "mysql", **source}}
    topic.tell(key_of(1), json.dumps(value).encode())

    with pytest.raises(InvalidInputError, match=rf"offset 0, .*{problem}"):
        topic.ingest(table, metadata=metadata)
    found = topic.ingest(table, metadata=metadata, on_reject="quarantine")

    assert found.rejected_count == 1
    assert rows_of(table) == []


def test_a_column_that_orders_nothing_is_null_where_the_record_has_no_such_metadata() -> None:
    table, topic = table_of({**ROW, "ordinal": "BIGINT", "gtid": "STRING"}), RawTopic()
    topic.tell(key_of(1), change("c", 1, "tea", None))

    topic.ingest(table, metadata=f"{LSN}, gtid = value.source.gtid")

    assert rows_of(table) == [(1, "tea", None, None)]


# With other options


def test_a_rejected_record_keeps_its_place_in_the_topic() -> None:
    columns = {"id": "BIGINT NOT NULL", "item": "VARCHAR(5)", "part": "INT", "place": "BIGINT", "at": "BIGINT"}
    table, topic = table_of(columns), RawTopic(partition_count=3)
    metadata = "part = partition, place = offset, at = timestamp"
    topic.tell(key_of(9), change("c", 9, "tea", 1), 1, 1111)
    topic.tell(key_of(1), change("c", 1, "teapot", 2), 1, 2222)
    topic.tell(key_of(2), change("c", 2, "teapot", 3), 2, 3333)
    topic.ingest(table, metadata=metadata, on_reject="quarantine")

    reingest(table, options={"source.metadata": metadata}, fixes={"item": "left(item, 5)"})

    assert rows_of(table) == [(1, "teapo", 1, 1, 2222), (2, "teapo", 2, 0, 3333), (9, "tea", 1, 0, 1111)]


def test_a_rejected_record_is_not_newer_because_it_is_re_ingested() -> None:
    table, topic = table_of({**ROW, "item": "VARCHAR(5)", "ordinal": "BIGINT"}, ORDERED), RawTopic()
    for lsn, (key, item) in enumerate([(1, "teapot"), (1, "cup"), (2, "teapot"), (2, None)]):
        op = "d" if item is None else "c"
        topic.tell(key_of(key), change(op, key, item, lsn))
    topic.ingest(table, metadata=LSN, on_reject="quarantine")

    found = reingest(table, options={"source.metadata": LSN}, fixes={"item": "left(item, 5)"})

    assert (found.record_count, found.remaining) == (2, {})
    assert rows_of(table) == [(1, "cup", 1)]


def test_a_column_of_the_source_with_the_same_name_is_neither_read_nor_followed() -> None:
    table, topic = ordered_table(), RawTopic()
    fields = [("id", "int64"), ("item", "string"), ("ordinal", "string"), ("colour", "string")]
    row = [{"field": name, "type": of, "optional": True} for name, of in fields]
    source = [{"field": "lsn", "type": "int64", "optional": True}]
    parts = {"before": row, "after": row, "source": source}
    schema = [{"type": "struct", "field": side, "optional": True, "fields": each} for side, each in parts.items()]
    schema.append({"field": "op", "type": "string", "optional": False})
    after = {"id": 1, "item": "tea", "ordinal": "first", "colour": "green"}
    payload = {"before": None, "after": after, "op": "c", "source": {"lsn": 7}}
    topic.tell(key_of(1), json.dumps({"schema": {"type": "struct", "fields": schema}, "payload": payload}).encode())

    topic.ingest(table, format="debezium-json-schema", metadata=LSN)

    refreshed = table.refresh()
    assert refreshed.arrow_schema.names == ["id", "item", "ordinal", "colour"]
    assert refreshed.arrow_schema.field("ordinal").type == pa.int64()
    assert rows_of(refreshed) == [(1, "tea", 7, "green")]


# Deletions


def test_a_deletion_outlives_an_older_row_that_is_read_later() -> None:
    table = table_of({"id": "BIGINT NOT NULL", "item": "STRING NOT NULL", "ordinal": "BIGINT NOT NULL"}, ORDERED)
    topic = RawTopic(partition_count=2)
    topic.tell(key_of(1), change("d", 1, None, 5), 0)
    topic.tell(key_of(1), change("c", 1, "tea", 3), 1)

    topic.ingest(table, metadata=LSN, rows_per_commit=1)
    topic.tell(key_of(1), change("c", 1, "cup", 4), 1)
    topic.ingest(table, metadata=LSN)
    assert rows_of(table) == []
    topic.tell(key_of(1), change("c", 1, "pot", 6), 1)
    topic.ingest(table, metadata=LSN)

    assert rows_of(table) == [(1, "pot", 6)]


def test_a_deletion_that_is_older_than_the_row_does_not_delete_it() -> None:
    table, topic = ordered_table(), RawTopic(partition_count=2)
    topic.tell(key_of(1), change("c", 1, "pot", 6), 0)
    topic.tell(key_of(1), change("d", 1, None, 5), 1)
    topic.tell(key_of(1), None, 1)

    topic.ingest(table, metadata=LSN, rows_per_commit=1)

    assert rows_of(table) == [(1, "pot", 6)]


@pytest.mark.parametrize("item", [None, "longer than the column"])
def test_an_older_deletion_with_its_whole_row_does_not_delete_a_newer_row(item: str | None) -> None:
    table, topic = table_of({**ROW, "item": "VARCHAR(5)", "ordinal": "BIGINT"}, ORDERED), RawTopic(partition_count=2)
    before = {"id": 1, "item": item}
    deletion = {"before": before, "after": None, "op": "d", "source": {"connector": "mysql", "lsn": 5}}
    topic.tell(key_of(1), change("c", 1, "pot", 6), 0)
    topic.tell(key_of(1), json.dumps(deletion).encode(), 1)

    topic.ingest(table, metadata=LSN, rows_per_commit=1)

    assert rows_of(table) == [(1, "pot", 6)]


@pytest.mark.parametrize("batch_size", [1, 1000])
def test_tombstones_of_envelopes_are_passed_over_unless_compaction_may_have_left_them_alone(batch_size: int) -> None:
    kept, compacted = ordered_table(), ordered_table()
    topic = RawTopic(batch_size=batch_size)
    topic.tell(key_of(1), change("c", 1, "tea", 1))
    topic.tell(key_of(1), None)

    topic.ingest(kept, metadata=LSN)
    topic.is_compacting = True
    with pytest.raises(InvalidInputError, match=r"offset 1, .*column 'ordinal'.* it is a tombstone"):
        topic.ingest(compacted, metadata=LSN)
    rejecting = topic.ingest(compacted, metadata=LSN, on_reject="quarantine")
    again = reingest(compacted, options={"source.metadata": LSN})

    assert rows_of(kept) == [(1, "tea", 1)] == rows_of(compacted)
    assert (rejecting.rejected_count, again.record_count, len(again.remaining)) == (1, 0, 1)


@pytest.mark.parametrize("batch_size", [1, 1000])
@pytest.mark.parametrize("is_flattened", [True, False])
def test_a_tombstone_directly_after_its_deletion_says_nothing_new(*, is_flattened: bool, batch_size: int) -> None:
    table, topic = ordered_table(), RawTopic(batch_size=batch_size, is_compacting=True)
    deletion = {"id": 1, "item": None, "__deleted": "true", "__lsn": 5}
    topic.tell(key_of(1), json.dumps(deletion).encode() if is_flattened else change("d", 1, None, 5))
    topic.tell(key_of(1), None)
    topic.tell(key_of(2), None)
    of_format = "debezium-flattened-json" if is_flattened else "debezium-json"

    found = topic.ingest(table, format=of_format, metadata=LSN, on_reject="quarantine")

    assert table.inspect.rejected()["offset"].to_pylist() == [2]
    assert found.row_count == 1


def test_a_tombstone_is_ordered_by_the_time_of_kafka() -> None:
    table, topic = ordered_table(), RawTopic(partition_count=2)
    metadata = "ordinal = timestamp"
    topic.tell(key_of(1), None, 0, timestamp=50)
    topic.tell(key_of(2), change("c", 2, "cup", 9), 0, timestamp=70)
    topic.tell(key_of(1), change("c", 1, "tea", 9), 1, timestamp=40)
    topic.tell(key_of(2), None, 1, timestamp=60)

    topic.ingest(table, metadata=metadata, rows_per_commit=1)

    assert rows_of(table) == [(2, "cup", 70)]


# Values that are left out


def test_an_unchanged_value_is_not_taken_from_a_row_while_added_partitions_are_read() -> None:
    table, topic = ordered_table(), RawTopic()
    unchanged = "__debezium_unavailable_value"
    topic.tell(key_of(1), change("c", 1, "first", 1))
    topic.ingest(table, metadata=LSN)
    topic.grow(3)
    topic.tell(key_of(1), change("u", 1, unchanged, 5), 1)
    topic.tell(key_of(1), change("u", 1, "second", 3), 2)

    with pytest.raises(InvalidInputError, match=r"column 'item'.*the topic has got partitions"):
        topic.ingest(table, metadata=LSN)
    topic.ingest(table, metadata=LSN, on_reject="quarantine")
    found = reingest(table, options={"source.metadata": LSN})

    assert found.record_count == 1
    assert rows_of(table) == [(1, "second", 5)]


def test_a_run_that_ends_early_leaves_added_partitions_for_the_next_one() -> None:
    table, topic = ordered_table(), RawTopic(partition_count=2)
    topic.tell(key_of(1), change("c", 1, "first", 1), 1)
    topic.ingest(table, metadata=LSN)
    topic.grow(3)
    topic.tell(key_of(2), change("c", 2, "cup", 2), 0)
    topic.tell(key_of(3), b"{", 1)
    topic.tell(key_of(1), change("u", 1, "second", 3), 1)
    topic.tell(key_of(1), change("u", 1, "__debezium_unavailable_value", 5), 2)

    with pytest.raises(CorruptFileError, match="partition 1, offset 1"):
        topic.ingest(table, metadata=LSN)
    topic.ingest(table, metadata=LSN, on_reject="quarantine")

    assert rows_of(table) == [(1, "second", 3), (2, "cup", 2)]
    assert sorted(table.inspect.rejected()["partition"].to_pylist()) == [1, 2]


def test_an_older_row_of_a_commit_that_completes_others_is_passed_over() -> None:
    table, topic = ordered_table(), RawTopic()
    topic.tell(key_of(1), change("c", 1, "long", 5))
    topic.tell(key_of(2), change("c", 2, "cup", 6))
    topic.ingest(table, metadata=LSN)
    topic.tell(key_of(2), change("c", 2, "old", 2))
    topic.tell(key_of(1), change("u", 1, "__debezium_unavailable_value", 7))

    topic.ingest(table, metadata=LSN)

    assert rows_of(table) == [(1, "long", 7), (2, "cup", 6)]
