"""Interoperability with other clients: librdkafka reads our topics, and we read topics of others."""

from __future__ import annotations

import json
from collections.abc import Iterator

import confluent_kafka as librdkafka
import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaProducer

from storage_lib.errors import CorruptFileError, InvalidInputError
from storage_lib.io.environment import SystemClock
from storage_lib.log_store.codec.debezium_json import DebeziumJson
from storage_lib.log_store.kafka.kafka_log_settings import KafkaLogSettings
from storage_lib.log_store.kafka.kafka_log_store import KafkaLogStore
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.schema.options.table_options import ChangelogMode
from tests.support.log_changes import changes, log_schema, log_texts, read_log

pytestmark = [pytest.mark.kafka, pytest.mark.integration]

SCHEMA = log_schema()


@pytest.fixture
def log(kafka_servers: str, topic: str) -> Iterator[KafkaLogStore]:
    store = open_store(kafka_servers, topic)
    store.create()
    yield store
    store.drop()


def open_store(servers: str, topic: str, **client_options: str) -> KafkaLogStore:
    dotted = {key.replace("_", "."): value for key, value in client_options.items()}
    settings = KafkaLogSettings(
        topic=topic, table_uuid=f"table-of-{topic}", client_options={"bootstrap.servers": servers, **dotted}
    )
    return KafkaLogStore(SCHEMA, settings, SystemClock())


def many_rows(count: int, *, first: int = 0) -> tuple[pa.RecordBatch, pa.Array]:
    """Return rows whose names have 0 to 2,000 bytes, and every kind of upsert mode."""
    random = np.random.default_rng(7)
    lengths = np.where(random.random(count) < 0.01, random.integers(0, 2_000, count), random.integers(0, 40, count))
    names = pa.array(["né" * int(length // 3) for length in lengths])
    rows = pa.RecordBatch.from_arrays([pa.array(np.arange(first, first + count)), names], schema=SCHEMA.arrow_schema)
    return rows, pa.array(random.choice(np.array([0, 2, 3], np.int8), count))


def read_by_librdkafka(servers: str, topic: str, count: int) -> list[tuple[bytes | None, bytes | None, object]]:
    consumer = librdkafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": topic,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([librdkafka.TopicPartition(topic, 0, 0)])
    found: list[tuple[bytes | None, bytes | None, object]] = []
    try:
        while True:
            for message in consumer.consume(10_000, 0.5):
                error = message.error()
                if error is None:
                    found.append((message.key(), message.value(), message.headers()))
                    continue
                assert error.code() == librdkafka.KafkaError._PARTITION_EOF, error
                assert len(found) == count
                return found
    finally:
        consumer.close()


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
def test_librdkafka_reads_every_record_as_we_wrote_it(
    kafka_servers: str, topic: str, log: KafkaLogStore, compression: str
) -> None:
    store = open_store(kafka_servers, topic, compression_type=compression)
    codec = DebeziumJson.for_table(SCHEMA, ChangelogMode.AUTO)
    rows, kinds = many_rows(40_000)
    expected: list[tuple[bytes | None, bytes | None, object]] = []
    for number in range(3):
        transaction = store.begin(0)
        transaction.write(0, rows, kinds, repairs=number or None)
        transaction.flush()
        is_committed = number != 1
        store.end(transaction.handle, commit=is_committed)
        if is_committed:
            headers = [("repairs-snapshot", str(number).encode())] if number else None
            for part in codec.encode(rows, kinds):
                pairs = zip(part.keys.to_pylist(), part.values.to_pylist(), strict=True)
                expected += [(key, value, headers) for key, value in pairs]

    found = read_by_librdkafka(kafka_servers, topic, len(expected))

    assert found == expected
    assert [c.row[0] for c in read_log(log)] == [json.loads(key or b"")["id"] for key, _, _ in found]


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_librdkafka_writes_we_read(kafka_servers: str, topic: str, log: KafkaLogStore, compression: str) -> None:
    settings = {
        "bootstrap.servers": kafka_servers,
        "compression.type": compression,
        "linger.ms": 20,
        "transactional.id": f"foreign-{topic}",
        "queue.buffering.max.messages": 200_000,
    }
    producer = librdkafka.Producer(settings)
    producer.init_transactions()
    count = 30_000
    for is_kept in (True, False, True):
        producer.begin_transaction()
        for number in range(count):
            value = json.dumps({"before": None, "after": {"id": number, "name": "x" * (number % 50)}, "op": "c"})
            producer.produce(topic, key=b"k%d" % number, value=value.encode(), partition=0)
            if number % 1_000 == 0:
                producer.poll(0)
        if is_kept:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    # The coordinator acknowledges a commit before its marker is in the topic. It admits the next producer of this id
    # only after that.
    librdkafka.Producer(settings).init_transactions()

    ids = [change.row[0] for change in read_log(log)]

    assert ids == [*range(count), *range(count)]


def test_what_kafka_python_writes_one_by_one_we_read(kafka_servers: str, topic: str, log: KafkaLogStore) -> None:
    producer = KafkaProducer(bootstrap_servers=kafka_servers, compression_type="gzip")
    for number in range(300):
        headers = [("repairs-snapshot", b"%d" % number)] if number % 7 == 0 else [("other", b"")]
        value = b'{"op":"c","after":{"id":%d}}' % number if number % 5 else None
        producer.send(topic, value=value, key=b"k", partition=0, headers=headers)
    producer.flush()
    producer.close()

    found = read_log(log)

    assert [change.row for change in found] == [(number, None) for number in range(300) if number % 5]
    assert [change.repairs for change in found] == [
        (number if number % 7 == 0 else None) for number in range(300) if number % 5
    ]


def test_a_foreign_value_is_named_by_topic_bucket_and_offset(
    kafka_servers: str, topic: str, log: KafkaLogStore
) -> None:
    transaction = log.begin(0)
    transaction.write(0, *changes(SCHEMA, "+I 1 a"))
    transaction.flush()
    log.end(transaction.handle, commit=True)
    producer = KafkaProducer(bootstrap_servers=kafka_servers)
    producer.send(topic, value=b"hello", partition=0).get(timeout=120)
    producer.close()

    with pytest.raises(CorruptFileError, match=rf"'{topic}', bucket 0, offset 2.*hello"):
        list(log.read(LogOffsets({0: 2})))
    assert log_texts(log, LogOffsets(), LogOffsets({0: 2})) == ["+I 1 a"]


def test_a_read_of_a_long_log_comes_in_bounded_batches(log: KafkaLogStore) -> None:
    rows, kinds = many_rows(150_000)
    transaction = log.begin(0)
    transaction.write(0, rows, kinds)
    (written,) = transaction.flush()
    log.end(transaction.handle, commit=True)

    lengths, ids = [], []
    for batch in log.read(LogOffsets()):
        lengths.append(len(batch.rows))
        ids += batch.rows.column("id").to_pylist()

    assert written.next_offset - written.first_offset == 150_000
    assert ids == list(range(150_000))
    assert max(lengths) < 100_000


def test_a_row_larger_than_the_topic_takes_is_refused_by_key(log: KafkaLogStore) -> None:
    random = np.random.default_rng(1)
    noise = "".join(chr(c) for c in random.integers(0x4E00, 0x9FFF, 600_000))
    rows = pa.RecordBatch.from_arrays([pa.array([77]), pa.array([noise])], schema=SCHEMA.arrow_schema)
    transaction = log.begin(0)

    with pytest.raises(InvalidInputError, match=r'key b\'{"id":77}\'.*max\.message\.bytes'):
        transaction.write(0, rows, pa.array([0], pa.int8()))


def test_a_large_row_that_compresses_well_is_taken(log: KafkaLogStore) -> None:
    rows = pa.RecordBatch.from_arrays(
        [pa.array([1, 2, 3]), pa.array(["a", "x" * 5_000_000, "b"])], schema=SCHEMA.arrow_schema
    )
    transaction = log.begin(0)
    transaction.write(0, rows, pa.array([0, 0, 0], pa.int8()))
    transaction.flush()
    log.end(transaction.handle, commit=True)

    assert [len(str(change.row[1])) for change in read_log(log)] == [1, 5_000_000, 1]


def test_a_topic_that_somebody_else_has_made_under_the_name_is_not_written_to(
    log: KafkaLogStore, kafka_servers: str
) -> None:
    log.drop()
    admin = AdminClient({"bootstrap.servers": kafka_servers})
    name = log.settings.topic
    admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=1)])[name].result(120)

    with pytest.raises(InvalidInputError, match="not this table's log"):
        log.begin(0)
    with pytest.raises(InvalidInputError, match="not this table's log"):
        log.open_appender()

    admin.delete_topics([name])[name].result(120)
