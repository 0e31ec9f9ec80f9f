"""``ingest`` over a real broker: reads records of other clients, resuming from the table's own snapshots."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from storage_lib import CorruptFileError, InvalidInputError, NotFoundError, StreamPosition, ingest, open_catalog
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.table.sources.source_lag import source_lag
from tests.support.shared_server import unique_name
from tests.support.spark_topics import produce

if TYPE_CHECKING:
    from local_kafka import LocalKafka
    from storage_lib import DynamicTable

COLUMNS = pa.schema([("id", pa.int64()), ("price", pa.decimal128(10, 2)), ("at", pa.timestamp("us"))])


@pytest.fixture
def table(kafka: LocalKafka, tmp_path: Path) -> DynamicTable:
    catalog = open_catalog(str(tmp_path), {"log.kafka.bootstrap.servers": kafka.bootstrap_servers})
    options = {"log.kafka.topic": f"own-{unique_name(tmp_path)}"}
    return catalog.create_table("shop.prices", COLUMNS, primary_key=["id"], options=options)


def row(key: int, price: str) -> dict[str, object]:
    return {"id": key, "price": price, "at": 1_715_648_523_456_789, "unasked": [1]}


def test_a_topic_that_others_write_gets_into_the_table_once(table: DynamicTable, kafka: LocalKafka) -> None:
    topic, options = f"cdc-of-{table.uuid}", {"kafka.bootstrap.servers": kafka.bootstrap_servers}
    produce(
        kafka.bootstrap_servers,
        topic,
        {"before": None, "after": row(1, "Ag=="), "op": "r"},
        {"before": None, "after": row(2, "AMg="), "op": "c"},
        None,
        {"before": row(1, "Ag=="), "after": row(1, "/w=="), "op": "u"},
    )

    first = ingest(table, topic, options=options)
    produce(kafka.bootstrap_servers, topic, {"before": row(2, "AMg="), "after": None, "op": "d"})
    second = ingest(table, topic, options=options)

    assert (first.row_count, second.row_count, dict(second.offsets.next_offsets)) == (4, 1, {0: 5})
    held = table.to_arrow().to_pylist()
    assert [(each["id"], str(each["price"]), str(each["at"])) for each in held] == [
        (1, "-0.01", "2024-05-14 01:02:03.456789")
    ]
    assert first.snapshot is not None
    table.rollback_to(snapshot_id=first.snapshot.id)
    assert table.to_arrow().num_rows == 2
    assert ingest(table, topic, options=options).row_count == 1
    assert table.to_arrow().num_rows == 1


def test_what_can_not_be_read_is_told_and_what_comes_before_it_is_written(
    table: DynamicTable, kafka: LocalKafka
) -> None:
    topic, options = f"cdc-of-{table.uuid}", {"kafka.bootstrap.servers": kafka.bootstrap_servers}
    with pytest.raises(NotFoundError, match="has no topic"):
        ingest(table, topic, options=options)
    with pytest.raises(InvalidInputError, match="from-timestamp needs"):
        ingest(table, topic, options=options, startup="from-timestamp")

    produce(kafka.bootstrap_servers, topic, {"before": None, "after": row(1, "Ag=="), "op": "c"}, {"op": "x"})
    with pytest.raises(CorruptFileError, match="offset 1, key None: not a debezium-json change"):
        ingest(table, topic, options=options)

    assert table.to_arrow()["id"].to_pylist() == [1]


def test_what_can_not_be_read_is_passed_over_where_that_is_asked_for(
    table: DynamicTable, kafka: LocalKafka, caplog: pytest.LogCaptureFixture
) -> None:
    topic = f"cdc-of-{table.uuid}"
    options = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "log.scan.on-corrupt": "skip"}
    good: list[dict[str, object]] = [{"before": None, "after": row(key, "Ag=="), "op": "c"} for key in range(3)]
    produce(kafka.bootstrap_servers, topic, {"op": "x"}, good[0], {"op": "y"}, {"op": "z"}, good[1], None, good[2])

    result = ingest(table, topic, options=options)

    assert (result.row_count, dict(result.offsets.next_offsets)) == (3, {0: 7})
    assert sorted(table.to_arrow()["id"].to_pylist()) == [0, 1, 2]
    assert result.skipped_count == caplog.text.count("not a debezium-json change") == 3
    with pytest.raises(InvalidInputError, match="one of fail, skip"):
        ingest(table, topic, options={**options, "log.scan.on-corrupt": "maybe"})


def test_a_topic_of_newest_rows_deletes_what_has_no_value(table: DynamicTable, kafka: LocalKafka) -> None:
    topic, options = f"newest-of-{table.uuid}", {"kafka.bootstrap.servers": kafka.bootstrap_servers}
    produce(kafka.bootstrap_servers, topic)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for key, value in [(1, row(1, "1.5")), (2, row(2, "2.5")), (1, None), (2, row(2, "2.6")), (3, None)]:
        spelled = None if value is None else json.dumps({**value, "at": "2024-05-14 01:02:03.000004"})
        producer.produce(topic, spelled, key=json.dumps({"id": key}))
        producer.flush(20)
        ingest(table, topic, options=options, format="upsert-kafka")

    held = table.to_arrow().to_pylist()
    assert [(each["id"], str(each["price"]), str(each["at"])) for each in held] == [
        (2, "2.60", "2024-05-14 01:02:03.000004")
    ]
    told = table.stream(position=StreamPosition(snapshot_id=0, offsets=LogOffsets()))
    changes = [each for batch in iter(told.poll, None) for each in batch.to_pylist()]
    assert [(each["_row_kind"], each["id"], str(each["price"])) for each in changes] == [
        ("+I", 1, "1.50"),
        ("+I", 2, "2.50"),
        ("-D", 1, "1.50"),
        ("+I", 2, "2.60"),
    ]


def test_the_lag_of_a_table_is_what_its_source_has_beyond_its_newest_snapshot(
    table: DynamicTable, kafka: LocalKafka
) -> None:
    topic, options = f"cdc-of-{table.uuid}", {"log.kafka.bootstrap.servers": kafka.bootstrap_servers}
    for key in (1, 2, 3):
        produce(kafka.bootstrap_servers, topic, {"before": None, "after": row(key, "Ag=="), "op": "c"})
    untouched = source_lag(table, topic, options)
    ingest(table, topic, options=options)
    up_to_date = source_lag(table, topic, options)

    produce(kafka.bootstrap_servers, topic, {"before": row(2, "Ag=="), "after": None, "op": "d"})

    assert (untouched, up_to_date, source_lag(table, topic, options)) == (3, 0, 1)


def test_the_source_orders_rows_over_a_partition_that_is_added(kafka: LocalKafka, tmp_path: Path) -> None:
    topic, options = f"grown-{unique_name(tmp_path)}", {"kafka.bootstrap.servers": kafka.bootstrap_servers}
    metadata = "ordinal = value.source.lsn, part = partition, place = offset, at = timestamp, of = topic"
    columns = {"ordinal": "BIGINT", "part": "INT", "place": "BIGINT", "at": "TIMESTAMP_LTZ(3)", "of": "STRING"}
    made = {"log.system": "none", "sequence.field": "ordinal", "compaction.keep-deletes": "true"}
    table = open_catalog(str(tmp_path)).create_table(
        "shop.ordered", {"id": "BIGINT NOT NULL", **columns}, primary_key=["id"], options=made
    )
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    # Its records are of 1970: a broker may delete them at any time otherwise.
    admin.create_topics([NewTopic(topic, 2, 1, config={"retention.ms": "-1"})])[topic].result(120)

    def write(key: int, op: str, lsn: int, partition: int, at: int) -> None:
        row = {"id": key}
        before, after = (row, None) if op == "d" else (None, row)
        value = {"before": before, "after": after, "op": op, "source": {"connector": "postgresql", "lsn": lsn}}
        producer = Producer(
            {"bootstrap.servers": kafka.bootstrap_servers}
        )  # it knows only the partitions of its first record
        producer.produce(topic, json.dumps(value), json.dumps(row), partition=partition, timestamp=at)
        assert producer.flush(120) == 0

    write(1, "c", 1, 1, 1000)
    ingest(table, topic, options={**options, "source.metadata": metadata})
    write(1, "u", 2, 1, 2000)
    write(2, "c", 3, 1, 3000)
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(120)
    write(1, "u", 4, 0, 4000)
    write(2, "d", 5, 0, 5000)
    write(3, "c", 6, 2, 6000)
    ingest(table, topic, options={**options, "source.metadata": metadata}, rows_per_commit=1)

    assert [tuple(row.values()) for row in table.to_arrow().sort_by("id").to_pylist()] == [
        (1, 4, 0, 0, datetime.fromtimestamp(4, UTC), topic),
        (3, 6, 2, 0, datetime.fromtimestamp(6, UTC), topic),
    ]
