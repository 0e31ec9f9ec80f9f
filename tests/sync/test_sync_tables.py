"""Tables that a sync creates and follows: their columns and keys, what stops one, and what it says then."""

from __future__ import annotations

import json
from typing import Any, NoReturn

import pyarrow as pa
import pytest

from storage_lib import AlreadyExistsError, Catalog, DynamicTable, InvalidInputError, MemoryCatalog, UnavailableError
from storage_lib.sync.sync_database import SyncResult, sync_topics
from storage_lib.sync.synced_table import SyncSettings, TableSync
from storage_lib.sync.topic_rules import TopicRules
from storage_lib.table.sources.ingest import SourceReader
from tests.support.fake_environment import fake_environment
from tests.support.raw_topic import RawTopic
from tests.support.raw_topics import RawTopics

ITEM: dict[str, dict[str, Any]] = {
    "id": {"type": "int32", "optional": False},
    "name": {"type": "string", "optional": True},
    "price": {
        "type": "bytes",
        "optional": True,
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "2", "connect.decimal.precision": "10"},
    },
    "at": {"type": "int64", "optional": False, "name": "io.debezium.time.MicroTimestamp"},
}
ROW = {"id": 1, "name": "tea", "price": "AfQ=", "at": 1_700_000_000_000_000}


def record(
    op: str,
    after: dict[str, Any] | None,
    fields: dict[str, dict[str, Any]] = ITEM,
    key: tuple[str, ...] = ("id",),
) -> tuple[bytes | None, bytes]:
    struct = {"type": "struct", "fields": [{"field": name, **of} for name, of in fields.items()], "optional": True}
    sides = [{"field": side, **struct} for side in ("before", "after")]
    schema = {"type": "struct", "fields": [*sides, {"field": "op", "type": "string"}], "optional": False}
    value = {"schema": schema, "payload": {"before": None, "after": after, "op": op}}
    of_key = {"type": "struct", "fields": [{"field": name, **fields.get(name, ITEM["id"])} for name in key]}
    told = {"schema": of_key, "payload": {name: (after or ROW).get(name, 0) for name in key}}
    return (dumped(told) if key else None), dumped(value)


def dumped(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def topics_of(**records: list[tuple[bytes | None, bytes | None]]) -> RawTopics:
    topics = RawTopics({f"shop.public.{name}": RawTopic() for name in records})
    for name, of_topic in records.items():
        for key, value in of_topic:
            topics.topics[f"shop.public.{name}"].tell(key, value)
    return topics


def memory() -> MemoryCatalog:
    return MemoryCatalog(environment=fake_environment())


def sync(
    catalog: Catalog,
    topics: RawTopics,
    format_: str = "debezium-json-schema",
    *,
    merge_shards: bool = True,
    **options: str,
) -> dict[str, TableSync]:
    given = {f"source.{key.replace('_', '-')}": value for key, value in options.items()}
    ordered = {"sequence.field": "written"} if "source.metadata" in given else {}
    settings = SyncSettings(
        options={"kafka.bootstrap.servers": "nowhere:9092", "log.format": format_, **given},
        table_options={"log.system": "none", "bucket": "2", **ordered},
        rows_per_turn=10,
        skip_expired=False,
        change_tracking=None,
    )
    rules = TopicRules(topics=("shop.public.*",), into="shop", rename={r"part_\d": "whole"}, merge_shards=merge_shards)
    result: SyncResult = sync_topics(catalog, topics, rules, settings, workers=2)
    return {each.table: each for each in result.tables}


def test_a_table_is_created_from_the_first_schema_with_the_key_of_the_records() -> None:
    catalog = memory()

    done = sync(catalog, topics_of(items=[record("c", ROW), record("c", {**ROW, "id": 2})]))["shop.items"]

    assert (done.is_created, done.row_count, done.lag, dict(done.errors)) == (True, 2, 0, {})
    table = catalog.load_table("shop.items")
    assert [str(each.type) for each in table.schema.fields] == [
        "INT NOT NULL",
        "STRING",
        "DECIMAL(10, 2)",
        "TIMESTAMP(6)",
    ]
    assert table.schema.primary_keys == ("id",)
    assert table.schema.options["bucket"] == "2"


def test_a_key_of_several_columns_and_none_make_such_tables() -> None:
    catalog = memory()

    sync(catalog, topics_of(pairs=[record("c", ROW, key=("id", "name"))], bags=[record("c", ROW, key=())]))

    assert catalog.load_table("shop.pairs").schema.primary_keys == ("id", "name")
    assert catalog.load_table("shop.bags").schema.primary_keys == ()


@pytest.mark.parametrize("batch_size", [1, 1000])
def test_a_first_record_that_is_none_is_kept_apart_like_any_other(batch_size: int) -> None:
    catalog, topics = memory(), topics_of(items=[(None, b"no record"), record("c", ROW)])
    topics.topics["shop.public.items"].batch_size = batch_size

    done = sync(catalog, topics, on_reject="quarantine")["shop.items"]

    assert (done.is_created, done.row_count, done.rejected_count, dict(done.errors)) == (True, 1, 1, {})
    assert catalog.load_table("shop.items").schema.primary_keys == ("id",)


def test_a_topic_without_a_row_waits_and_its_table_comes_with_its_first_row() -> None:
    catalog, topics = memory(), topics_of(items=[], gone=[(b'{"id":1}', None)])

    waiting = sync(catalog, topics)
    topics.topics["shop.public.items"].tell(*record("c", ROW))
    then = sync(catalog, topics)

    assert [each.is_waiting for each in waiting.values()] == [True, True]
    assert catalog.list_tables() == ["shop.items"]
    assert (then["shop.items"].is_created, then["shop.gone"].is_waiting) == (True, True)


def test_the_topic_of_transactions_makes_no_table_and_stops_nothing() -> None:
    catalog, bound = memory(), {"status": "BEGIN", "id": "571", "event_count": None}
    fields = [{"field": "status", "type": "string"}, {"field": "id", "type": "string"}]
    schema = {"type": "struct", "fields": fields, "name": "io.debezium.connector.common.TransactionMetadataValue"}
    topics = topics_of(items=[record("c", ROW)], transaction=[(None, dumped({"schema": schema, "payload": bound}))])

    done = sync(catalog, topics)

    assert (done["shop.transaction"].is_waiting, dict(done["shop.transaction"].errors)) == (True, {})
    assert catalog.list_tables() == ["shop.items"]
    topics.topics["shop.public.transaction"] = RawTopic()
    topics.topics["shop.public.transaction"].tell(None, dumped(bound))
    assert dict(sync(catalog, topics, "debezium-json")["shop.transaction"].errors) == {}


def test_new_columns_of_the_source_are_followed_and_counted() -> None:
    catalog, topics = memory(), topics_of(items=[record("c", ROW)])
    sync(catalog, topics)
    more = {**ITEM, "note": {"type": "string", "optional": True}}
    topics.topics["shop.public.items"].tell(*record("c", {**ROW, "id": 2, "note": "new"}, more))

    done = sync(catalog, topics)["shop.items"]

    assert (done.schema_change_count, done.row_count) == (1, 1)
    assert catalog.load_table("shop.items").to_arrow().sort_by("id")["note"].to_pylist() == [None, "new"]


def test_comments_of_columns_come_from_the_schemas_of_records() -> None:
    catalog, topics = (
        memory(),
        topics_of(items=[record("c", ROW, {**ITEM, "name": {**ITEM["name"], "doc": "as sold"}})]),
    )
    sync(catalog, topics)
    more = {**ITEM, "note": {"type": "string", "optional": True, "doc": "of the buyer"}}
    topics.topics["shop.public.items"].tell(*record("c", {**ROW, "id": 2, "note": "new"}, more))

    sync(catalog, topics)

    comments = {each.name: each.description for each in catalog.load_table("shop.items").schema.fields}
    assert comments == {"id": None, "name": "as sold", "price": None, "at": None, "note": "of the buyer"}


def test_shards_go_into_one_table_and_each_has_its_own_position() -> None:
    catalog = memory()
    topics = topics_of(part_1=[record("c", ROW)], part_2=[record("c", {**ROW, "id": 2})])

    done = sync(catalog, topics)["shop.whole"]
    topics.topics["shop.public.part_2"].tell(*record("c", {**ROW, "id": 3}))
    then = sync(catalog, topics)["shop.whole"]

    assert (done.topics, done.row_count) == (("shop.public.part_1", "shop.public.part_2"), 2)
    assert (then.row_count, sorted(catalog.load_table("shop.whole").to_arrow()["id"].to_pylist())) == (1, [1, 2, 3])


def test_a_topic_whose_table_has_read_another_one_is_refused_until_they_are_merged() -> None:
    """The rows of a second source replaced those of the first one in silence where another run had read that."""
    catalog = memory()
    sync(catalog, topics_of(whole=[record("c", ROW)]))
    shards = topics_of(part_1=[record("c", {**ROW, "name": "coffee"})])

    stopped = sync(catalog, shards, merge_shards=False)["shop.whole"]
    merged = sync(catalog, shards)["shop.whole"]

    assert "has the rows of topic 'shop.public.whole'" in str(stopped.errors["shop.public.part_1"])
    assert (stopped.row_count, merged.row_count, dict(merged.errors)) == (0, 1, {})


def test_a_topic_that_stops_names_its_reason_and_stops_no_other() -> None:
    catalog = memory()
    broken = record("c", {**ROW, "price": "not base64"})
    topics = topics_of(bad=[record("c", ROW), broken, record("c", {**ROW, "id": 2})], good=[record("c", ROW)])
    topics.topics["shop.public.silent"] = RawTopic()
    topics.down.add("shop.public.silent")

    done = sync(catalog, topics)

    (error,) = done["shop.bad"].errors.values()
    assert "partition 0, offset 1" in str(error)
    assert isinstance(done["shop.silent"].errors["shop.public.silent"], UnavailableError)
    assert (catalog.load_table("shop.bad").count(), catalog.load_table("shop.good").count()) == (1, 1)
    assert sync(catalog, topics, on_reject="quarantine")["shop.bad"].rejected_count == 1
    assert catalog.load_table("shop.bad").count() == 2


@pytest.mark.parametrize(
    ("key", "value", "format_", "problem"),
    [
        (b'{"id":1}', dumped({"after": {"id": 1}, "op": "c"}), "debezium-json", "its records carry no schema"),
        (b'{"id":1}', dumped({"after": {"id": 1}, "op": "c"}), "debezium-json-schema", "its records carry no schema"),
        (b"1", record("c", ROW)[1], "debezium-json-schema", "does not name its columns"),
        (b"?", record("c", ROW)[1], "debezium-json-schema", "can't be read"),
        (b'{"sku":1}', record("c", ROW)[1], "debezium-json-schema", "column 'sku' of the records' key is not one of"),
    ],
)
def test_a_table_that_nobody_can_tell_is_not_created(key: bytes, value: bytes, format_: str, problem: str) -> None:
    catalog = memory()

    (error,) = sync(catalog, topics_of(items=[(key, value)]), format_)["shop.items"].errors.values()

    assert isinstance(error, InvalidInputError)
    assert problem in str(error)
    assert catalog.list_tables() == []


def test_a_table_that_exists_needs_no_schema() -> None:
    catalog = memory()
    catalog.create_table("shop.items", pa.schema([("id", pa.int64())]), primary_key=["id"])
    value = dumped({"before": None, "after": {"id": 1}, "op": "c"})

    done = sync(catalog, topics_of(items=[(b'{"id":1}', value)]), "debezium-json")["shop.items"]

    assert (done.is_created, done.row_count) == (False, 1)


def test_a_new_table_has_the_columns_that_metadata_fills() -> None:
    catalog, topics = memory(), topics_of(items=[record("c", ROW)])

    done = sync(catalog, topics, metadata="written = timestamp, name = topic")

    assert dict(done["shop.items"].errors) == {}
    assert catalog.load_table("shop.items").schema.options["sequence.field"] == "written"
    assert catalog.load_table("shop.items").to_arrow()["name"].to_pylist() == ["shop.public.items"]


class OvertakenCatalog(MemoryCatalog):
    """A catalog in which another process creates each table first."""

    def create_table(self, *arguments: Any, **named: Any) -> DynamicTable:
        super().create_table(*arguments, **named)
        message = "it was created concurrently by another process"
        raise AlreadyExistsError(message)


def test_a_table_that_another_run_creates_at_the_same_moment_is_followed() -> None:
    catalog = OvertakenCatalog(environment=fake_environment())

    done = sync(catalog, topics_of(items=[record("c", ROW)]))["shop.items"]

    assert (done.is_created, done.row_count, dict(done.errors)) == (False, 1, {})


class TakenLogCatalog(MemoryCatalog):
    """A catalog whose new tables find the topic of another table where their log would be."""

    def create_table(self, *_: Any, **__: Any) -> DynamicTable:
        message = "topic 'shop.items' exists and is not this table's log"
        raise AlreadyExistsError(message)


def test_a_table_that_finds_the_topic_of_its_log_taken_stops_with_that_reason() -> None:
    catalog = TakenLogCatalog(environment=fake_environment())

    done = sync(catalog, topics_of(items=[record("c", ROW)]))["shop.items"]

    assert "topic 'shop.items' exists" in str(done.errors["shop.public.items"])


def test_a_topic_stops_where_the_source_has_another_key_and_goes_on_if_that_is_meant() -> None:
    catalog = memory()
    topics = topics_of(
        items=[record("c", ROW), record("c", {**ROW, "id": 2}), record("c", {**ROW, "at": 7}, key=("at",))],
        bags=[record("c", ROW, key=()), record("c", ROW)],
        keyless=[record("c", ROW), record("c", ROW, key=())],
    )

    stopped = sync(catalog, topics, on_reject="skip")
    again = sync(catalog, topics, key_change="ignore")

    errors = {name.rpartition(".")[2]: str(*done.errors.values()) for name, done in stopped.items()}
    assert "offset 2: the key of the source is (at), but that of the table is (id)" in errors["items"]
    assert "offset 1: the key of the source is (id), but the table has none" in errors["bags"]
    assert "offset 1: the source has no key, but that of the table is (id)" in errors["keyless"]
    assert [(done.row_count, done.commit_count, done.snapshot_id) for done in stopped.values()] == [
        (1, 1, 1),
        (2, 1, 1),
        (1, 1, 1),
    ]
    assert [(done.row_count, dict(done.errors)) for done in again.values()] == [(1, {}), (1, {}), (1, {})]


def test_a_truncate_before_the_first_row_does_not_decide_about_the_key() -> None:
    catalog = memory()
    truncate = record("t", None, key=())

    done = sync(catalog, topics_of(items=[truncate, record("c", ROW)], empty=[truncate]), on_truncate="apply")

    assert catalog.load_table("shop.items").schema.primary_keys == ("id",)
    assert done["shop.items"].row_count == 1
    assert done["shop.empty"].is_waiting


def test_the_reason_of_a_topic_is_its_first_error_also_where_its_table_is_dropped_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    catalog, topics = memory(), topics_of(items=[record("c", ROW)])
    sync(catalog, topics)
    topics.topics["shop.public.items"].tell(*record("c", {**ROW, "id": 2}))
    lost = UnavailableError("the storage does not answer")

    def dropped(*_: object, **__: object) -> NoReturn:
        catalog.drop_table("shop.items")
        raise lost

    monkeypatch.setattr(SourceReader, "read_up_to", dropped)

    done = sync(catalog, topics)["shop.items"]

    assert dict(done.errors) == {"shop.public.items": lost}
