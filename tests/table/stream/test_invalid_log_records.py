"""Invalid records in a table's own topic are reported with their offset, and skipped on request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from storage_lib import CorruptFileError, open_catalog
from storage_lib.schema.evolution.schema_changes import SetOption
from tests.support.shared_server import unique_name

if TYPE_CHECKING:
    from local_kafka import LocalKafka

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.string())])


def row(key: int) -> pa.Table:
    return pa.table({"id": [key], "v": ["a"]}, schema=COLUMNS)


def poison(kafka: LocalKafka, topic: str) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for value in (b"hello", b'{"op": "x"}'):
        producer.produce(topic, value, partition=0)
    assert producer.flush(20) == 0


@pytest.mark.parametrize("consistency", ["transactional", "eventual"])
def test_what_nobody_can_read_in_a_tables_own_log_is_told_or_passed_over(
    kafka: LocalKafka, tmp_path: Path, caplog: pytest.LogCaptureFixture, consistency: str
) -> None:
    catalog = open_catalog(str(tmp_path), {"log.kafka.bootstrap.servers": kafka.bootstrap_servers})
    topic = f"poisoned-{consistency}-{unique_name(tmp_path)}"
    options = {"log.kafka.topic": topic, "log.consistency": consistency, "bucket": "1"}
    table = catalog.create_table("shop.orders", COLUMNS, primary_key=["id"], options=options)
    before = table.stream(startup="full")
    assert before.poll() is None
    table.append(row(1))
    poison(kafka, topic)

    with pytest.raises(CorruptFileError, match=r"bucket 0, offset \d+: not a debezium-json .*log.scan.on-corrupt=skip"):
        [batch.num_rows for batch in iter(before.poll, None)]
    if consistency == "eventual":
        with pytest.raises(CorruptFileError, match=r"log.scan.on-corrupt=skip"):
            table.append(row(2))
    table = table.alter(SetOption("log.scan.on-corrupt", "skip"))
    table.append(row(3))

    told = {1, 3} if consistency == "transactional" else {1, 2, 3}
    assert set(table.to_arrow()["id"].to_pylist()) == told
    again = table.stream(position=before.position)
    assert {key for batch in iter(again.poll, None) for key in batch["id"].to_pylist()} | {1} == told
    at = 2 if consistency == "transactional" else 1
    for offset in (at, at + 1):
        place = f"log {topic!r}, bucket 0, offset {offset}"
        assert f"{place}: skipped a record that is not a debezium-json change" in caplog.text
