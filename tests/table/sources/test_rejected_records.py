"""Records that do not fit: each stops the reading, is skipped, or is kept apart, and the others are taken."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from storage_lib import CorruptFileError, DynamicTable, InvalidInputError, MemoryCatalog
from storage_lib.schema.types.type_spelling import parse_type
from tests.support.fake_environment import fake_environment
from tests.support.raw_topic import NAME, RawTopic

_BAD: dict[str, tuple[Any, str]] = {
    "no JSON": ("{", "not a debezium-json change"),
    "no operation": ({"before": None, "after": {"id": 9}}, "unknown op"),
    "a text for a number": ({"after": {"id": "x"}, "op": "c"}, "not a debezium-json change"),
    "too long": ({"after": {"id": 9, "item": "too long"}, "op": "c"}, "'item' is VARCHAR"),
    "a text for a double": ({"after": {"id": 9, "item": "a", "price": "1.5"}, "op": "c"}, "not a debezium-json change"),
    "no value where one has to be": ({"after": {"id": 9, "item": None}, "op": "c"}, "'item'"),
    "no row": ({"before": None, "after": None, "op": "c"}, "after is null"),
    "out of range": ({"after": {"id": 9, "item": "a", "day": 99999999}, "op": "c"}, "out of the range of DATE"),
    "a float that is too large": ({"after": {"id": 9, "item": "a", "rate": 1e39}, "op": "c"}, "'rate'"),
    "an unknown key": ({"before": None, "after": None, "op": "d"}, "primary key (id)"),
}


@pytest.mark.parametrize("kind", _BAD)
def test_a_record_that_does_not_fit_stops_the_reading_after_those_before_it(kind: str) -> None:
    table, topic = table_of(), topic_with(kind)

    for _ in range(2):
        with pytest.raises((CorruptFileError, InvalidInputError)) as refused:
            topic.ingest(table)

        assert f"topic {NAME!r}, partition 0, offset 1, " in str(refused.value)
        assert _BAD[kind][1] in str(refused.value)
        assert "Everything before it was committed" in str(refused.value)
    assert ids(table) == [1]
    assert table.inspect.snapshots().num_rows == 1


@pytest.mark.parametrize("kind", _BAD)
@pytest.mark.parametrize("batch_size", [1, 1000])
def test_a_record_that_does_not_fit_is_skipped_or_kept_apart(kind: str, batch_size: int) -> None:
    skipping, keeping, topic = table_of(), table_of(), topic_with(kind, batch_size)

    skipped = topic.ingest(skipping, on_reject="skip")
    kept = topic.ingest(keeping, on_reject="quarantine")

    assert (skipped.skipped_count, skipped.rejected_count) == (1, 0)
    assert (kept.skipped_count, kept.rejected_count) == (0, 1)
    assert ids(skipping) == ids(keeping) == [1, 2]
    assert skipping.inspect.system_table("rejected").num_rows == 0
    (record,) = keeping.inspect.system_table("rejected").to_pylist()
    assert (record["source"], record["topic"], record["partition"], record["offset"]) == (NAME, NAME, 0, 1)
    assert (record["key"], record["value"]) == (topic.partitions[0][1][1], topic.partitions[0][1][2])
    assert _BAD[kind][1].removeprefix("not a debezium-json change") in record["reason"]


def test_a_record_whose_unchanged_value_is_nowhere_is_kept_apart_with_the_same_commit() -> None:
    table, topic = table_of(), RawTopic()
    for key in (1, 2, 1):
        after = {"id": key, "item": "__debezium_unavailable_value" if key == 2 else "a"}
        topic.tell(b'{"id":%d}' % key, json.dumps({"after": after, "op": "u"}).encode())

    found = topic.ingest(table, on_reject="quarantine")

    assert (found.row_count, found.rejected_count, found.commit_count) == (2, 1, 1)
    assert ids(table) == [1]
    (record,) = table.inspect.system_table("rejected").to_pylist()
    assert (record["offset"], record["column"]) == (1, "item")


def test_a_value_that_is_the_placeholder_is_refused_with_the_option_that_takes_it() -> None:
    topic, table, other = RawTopic(), table_of(), table_of()
    topic.tell(b'{"id":1}', json.dumps({"op": "c", "after": {"id": 1, "item": "n/a"}}).encode())

    with pytest.raises(InvalidInputError, match=r"debezium\.unavailable-value-placeholder"):
        topic.ingest(table, options={"debezium.unavailable-value-placeholder": "n/a"})
    topic.ingest(other)

    assert other.refresh().to_arrow()["item"].to_pylist() == ["n/a"]


def test_a_deletion_after_a_refused_update_of_the_same_commit_is_made() -> None:
    table, topic = table_of(), RawTopic()
    row = {"id": 1, "item": "a", "price": 1.5, "day": None, "rate": None}
    for value in (
        {"after": row, "op": "c"},
        {"after": {**row, "item": "__debezium_unavailable_value", "rate": None, "day": None, "price": 2.5}, "op": "u"},
        {"after": {"id": 1, "item": "too long"}, "op": "u"},
        {"before": {"id": 1}, "after": None, "op": "d"},
    ):
        topic.tell(b'{"id":1}', json.dumps(value).encode())

    found = topic.ingest(table, on_reject="quarantine")

    assert (found.rejected_count, table.count()) == (1, 0)


def test_a_sum_does_not_count_a_value_again_that_a_record_does_not_have() -> None:
    catalog = MemoryCatalog(environment=fake_environment())
    columns = pa.schema([("id", pa.int64()), ("qty", pa.int64())])
    options = {"merge-engine": "aggregation", "fields.qty.aggregate-function": "sum", "log.system": "none"}
    table = catalog.create_table("shop.sums", columns, primary_key=["id"], options=options)
    topic = RawTopic()
    for row in ({"id": 1, "qty": 5}, {"id": 1}, {"id": 1}):
        topic.tell(b'{"id":1}', json.dumps({"after": row, "op": "c"}).encode())
        topic.ingest(table)

    assert table.to_arrow().to_pylist() == [{"id": 1, "qty": 5}]


def test_a_record_without_a_key_is_refused_by_name_in_a_table_with_rows() -> None:
    table, topic = table_of(), topic_with("no row")
    topic.partitions[0][1] = (1, None, json.dumps({"after": {"item": "a"}, "op": "c"}).encode())

    found = topic.ingest(table, rows_per_commit=1, on_reject="quarantine")

    assert (found.rejected_count, ids(table)) == (1, [1, 2])


def test_a_truncation_is_not_applied_where_partitions_have_no_order() -> None:
    table, topic = table_of(), RawTopic(partition_count=2)
    topic.tell(None, json.dumps({"op": "t"}).encode())

    with pytest.raises(InvalidInputError, match="2 partitions, and nobody knows which"):
        topic.ingest(table, on_truncate="apply")


def test_a_column_is_absent_although_another_part_of_the_record_has_its_name_with_null() -> None:
    catalog = MemoryCatalog(environment=fake_environment())
    columns = pa.schema([("id", pa.int64()), ("transaction", pa.string()), ("srid", pa.string())])
    table = catalog.create_table("shop.named", columns, primary_key=["id"], options={"log.system": "none"})
    topic = RawTopic()
    for after in ({"id": 1, "transaction": "t", "srid": "s"}, {"id": 1, "geom": {"srid": None}}):
        value = {"before": None, "after": after, "op": "u", "transaction": None}
        topic.tell(b'{"id":1}', json.dumps(value, separators=(",", ":")).encode())

    topic.ingest(table)

    assert table.to_arrow().to_pylist() == [{"id": 1, "transaction": "t", "srid": "s"}]


def test_a_key_column_may_be_named_schema() -> None:
    catalog = MemoryCatalog(environment=fake_environment())
    columns = pa.schema([("schema", pa.string())])
    table = catalog.create_table("shop.named", columns, primary_key=["schema"], options={"log.system": "none"})
    topic = RawTopic()
    topic.tell(b'{"schema":"a"}', json.dumps({"after": {"schema": "a"}, "op": "c"}).encode())
    topic.ingest(table)
    topic.tell(b'{"schema":"a"}', None)

    topic.ingest(table)

    assert table.count() == 0


def test_one_record_is_skipped_by_hand_and_no_other() -> None:
    stopped, keeping, topic = table_of(), table_of(), topic_with("too long")
    good = {"before": None, "after": dict.fromkeys(("price", "day", "rate")) | {"id": 3, "item": "a"}, "op": "c"}
    topic.tell(b'{"id":3}', json.dumps(good).encode())

    with pytest.raises(InvalidInputError, match="offset 1, "):
        topic.ingest(stopped, skip="0:2, 1:1")
    found = topic.ingest(stopped, skip="0:1")
    kept = topic.ingest(keeping, skip="0:2", on_reject="quarantine")

    assert (found.skipped_count, ids(stopped)) == (1, [1, 2, 3])
    assert (kept.rejected_count, ids(keeping)) == (2, [1, 3])
    reasons = {each["offset"]: each["reason"] for each in keeping.inspect.system_table("rejected").to_pylist()}
    assert reasons[2] == "it is skipped by option source.skip"
    with pytest.raises(InvalidInputError, match=r"source\.skip is 'one'; give partitions and offsets"):
        topic.ingest(stopped, skip="one")


def test_an_append_only_table_refuses_deletions_and_takes_the_rest() -> None:
    catalog = MemoryCatalog(environment=fake_environment())
    options = {"log.system": "none", "write-mode": "append-only"}
    table = catalog.create_table("shop.lines", pa.schema([("id", pa.int64())]), options=options)
    topic = RawTopic()
    for operation in ("c", "d", "c"):
        side = "before" if operation == "d" else "after"
        topic.tell(None, json.dumps({side: {"id": 1}, "op": operation}).encode())

    found = topic.ingest(table, on_reject="quarantine")

    assert (table.count(), found.rejected_count) == (2, 1)
    assert "append-only" in table.inspect.system_table("rejected").to_pylist()[0]["reason"]


def test_a_compacted_topic_can_not_tell_unchanged_values_nor_old_rows() -> None:
    table, topic = table_of(), RawTopic(is_compacting=True)
    after = {"id": 1, "item": "a", "price": 1.5, "day": None, "rate": None}
    topic.tell(b'{"id":1}', json.dumps({"after": after, "op": "c"}).encode())
    unchanged = {**after, "item": "__debezium_unavailable_value"}
    topic.tell(b'{"id":1}', json.dumps({"after": unchanged, "op": "u"}).encode())
    catalog = MemoryCatalog(environment=fake_environment())
    keyless = catalog.create_table("shop.lines", table.arrow_schema, options={"log.system": "none"})

    with pytest.raises(InvalidInputError, match=r"offset 1, .*column 'item': .* the topic is compacted"):
        topic.ingest(table)
    topic.partitions[0][1] = (1, b'{"id":1}', json.dumps({"before": after, "op": "d"}).encode())
    with pytest.raises(InvalidInputError, match=r"offset 1, .* the topic is compacted"):
        topic.ingest(keyless)

    assert ids(table) == ids(keyless) == [1]


def table_of() -> DynamicTable:
    columns = {
        "id": "BIGINT NOT NULL",
        "item": "VARCHAR(3) NOT NULL",
        "price": "DOUBLE",
        "day": "DATE",
        "rate": "FLOAT",
    }
    typed = [(name, parse_type(spelling)) for name, spelling in columns.items()]
    catalog = MemoryCatalog(environment=fake_environment())
    return catalog.create_table("shop.orders", typed, primary_key=["id"], options={"log.system": "none"})


def topic_with(kind: str, batch_size: int = 1000) -> RawTopic:
    """Return a topic of which the second of three records is bad."""
    topic, bad = RawTopic(batch_size=batch_size), _BAD[kind][0]
    for number, value in ((1, None), (9, bad), (2, None)):
        good = {"before": None, "after": {"id": number, "item": "a"}, "op": "c"}
        record: Any = value or good
        if isinstance(record, dict) and record.get("after"):
            record = {**record, "after": {**dict.fromkeys(("price", "day", "rate")), **record["after"]}}
        spelled = record if isinstance(record, str) else json.dumps(record)
        key = b"?" if kind == "an unknown key" and value else b'{"id":%d}' % number
        topic.tell(key, spelled.encode())
    return topic


def ids(table: DynamicTable) -> list[int]:
    found: list[int] = sorted(table.to_arrow()["id"].to_pylist())
    return found
