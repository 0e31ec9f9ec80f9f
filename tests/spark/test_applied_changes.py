"""What a real Debezium wrote, through ``ingest`` and through a stream of Spark: equal tables, or the same refusal."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from storage_lib import DynamicTable, InvalidInputError, ingest, open_catalog
from storage_lib.errors import StorageError
from storage_lib.io.environment import system_environment
from storage_lib.io.local.local_file_io import LocalFileIO
from storage_lib.schema.types.rejected_schema import REJECTED_SCHEMA
from storage_lib.spark import SinkSource, SinkSpec, read_changelog, streaming_sink, write_stream
from storage_lib.spark.stream.sink.sink_heartbeat import read_heartbeat
from storage_lib.spark.types.spark_errors import storage_errors_of_spark
from storage_lib.sql import Session
from tests.support.deep_tests import thinned
from tests.support.recorded_changes import recorded, recorded_states
from tests.support.shared_server import unique_name
from tests.support.spark_features import rows_limit
from tests.support.spark_processes import warm_environment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.support.recorded_changes import RecordedRecord

pytestmark = pytest.mark.spark

TYPES = {
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
QUARANTINE, SKIP = {"source.on-reject": "quarantine"}, {"source.on-reject": "skip"}
WHOLE, IGNORE, APPLY = (
    {"source.before-image": "whole"},
    {"source.on-truncate": "ignore"},
    {"source.on-truncate": "apply"},
)
CASES: list[tuple[str, str, Mapping[str, str]]] = [
    ("toasted", "json", {}),
    ("orders", "json-schema", {**QUARANTINE, **IGNORE}),
    ("orders", "json", {}),
    ("orders_whole", "json-schema", {**WHOLE, **APPLY}),
    ("orders_whole", "json", WHOLE),
    ("orders_whole", "json-schema", {**WHOLE, "source.schema-change": "fail"}),
    ("orders", "flattened-json-schema", {**SKIP, "source.schema-change": "ignore"}),
    ("toasted", "flattened-json", QUARANTINE),
    ("keyless", "json-schema", {}),
    ("orders", "json", {"source.key-change": "fail", **SKIP, **IGNORE}),
    ("orders", "json-schema", {**QUARANTINE, **IGNORE, "source.reject-max": "0"}),
]


@pytest.mark.parametrize(("name", "mode", "options"), thinned([pytest.param(*case) for case in CASES], 6))
def test_a_stream_applies_what_ingest_applies(
    spark: SparkSession, bootstrap_servers: str, tmp_path: Path, name: str, mode: str, options: Mapping[str, str]
) -> None:
    topic = produced(bootstrap_servers, f"{unique_name(tmp_path)}-{name}", recorded(mode, name))
    given = {"log.kafka.bootstrap.servers": bootstrap_servers, "log.format": f"debezium-{mode}", **options}
    mine, other = table_of(tmp_path / "mine", name), table_of(tmp_path / "other", name)
    expected: StorageError | None = None
    try:
        ingest(other, topic, options=given, format=given["log.format"])
    except StorageError as error:
        expected = error

    df = read_changelog(spark, topic=topic, table=mine, options=given, rows_per_trigger_max=rows_limit(9))
    stream = write_stream(df, mine, checkpoint_location=str(tmp_path / "checkpoint"), available_now=True)
    if expected is None:
        stream.awaitTermination()
    else:
        with pytest.raises(type(expected)) as stopped:
            stream.awaitTermination()
        assert str(stopped.value) == str(expected)

    mine, other = mine.refresh(), other.refresh()
    assert mine.arrow_schema == other.arrow_schema
    assert rejected_of(mine) == rejected_of(other)
    # A stream makes smaller commits, and those before the one that is not made remain.
    of_commit = ("Nothing of the commit", "The commit that would contain it was not made")
    if expected is None or not any(words in str(expected) for words in of_commit):
        assert rows_of(mine) == rows_of(other)
        assert stream.applied is not None
        assert stream.applied.counts.rejected_count == len(rejected_of(mine))


@pytest.mark.deep
@pytest.mark.timeout(8000)
def test_a_driver_that_is_killed_before_or_after_a_commit_leaves_out_and_doubles_nothing(
    spark_conf: dict[str, str], bootstrap_servers: str, tmp_path: Path
) -> None:
    topic = produced(bootstrap_servers, unique_name(tmp_path), recorded("json-schema", "orders"))
    servers = {"log.kafka.bootstrap.servers": bootstrap_servers}
    options = {**servers, "log.format": "debezium-json-schema", **QUARANTINE, **IGNORE}
    mine, other = table_of(tmp_path / "mine", "orders"), table_of(tmp_path / "other", "orders")
    read = ingest(other, topic, options=options, format=options["log.format"])
    job = {
        "warehouse": mine.address.warehouse,
        "table": mine.name,
        "conf": spark_conf,
        "topic": topic,
        "options": options,
        "checkpoint": str(tmp_path / "checkpoint"),
    }

    # A micro-batch of seven records has up to three commits, around a new column.
    for kill in ({"before": 2}, {"after": 1}, {"after": 3}, {"before": 1}):
        assert run_driver({**job, "kill": kill}).returncode == -signal.SIGKILL
    finished = run_driver({**job, "kill": {}})

    assert finished.returncode == 0, finished.stderr[-3000:]
    mine, other = mine.refresh(), other.refresh()
    assert rows_of(mine) == rows_of(other)
    assert rejected_of(mine) == rejected_of(other)
    assert len(rejected_of(mine)) == read.rejected_count > 0
    assert mine.inspect.source_offsets(topic) == other.inspect.source_offsets(topic)


def run_driver(job: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
    """Apply the topic in a driver of its own, which kills itself at a commit."""
    script = Path(__file__).parents[1] / "support" / "spark_applied_stream.py"
    return subprocess.run(
        [sys.executable, str(script), json.dumps(job)],
        env=warm_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        timeout=1500,  # only against a driver that hangs: a busy machine has needed more than 400
        check=False,
    )


def test_a_sink_of_a_topic_applies_it_and_tells_what_it_rejected(
    spark: SparkSession, bootstrap_servers: str, tmp_path: Path
) -> None:
    del spark  # the sink finds the session
    topic = produced(bootstrap_servers, unique_name(tmp_path), recorded("json-schema", "orders"))
    mine, other = table_of(tmp_path / "mine", "orders"), table_of(tmp_path / "other", "orders")
    servers, options = {"log.kafka.bootstrap.servers": bootstrap_servers}, {"log.format": "debezium-json-schema"}
    spec = SinkSpec(
        warehouse=mine.address.warehouse,
        table=mine.name,
        source=SinkSource(kind="debezium_json", name=topic, options={**options, **QUARANTINE, **IGNORE}),
        catalog_options=servers,
        checkpoint_location=str(tmp_path / "checkpoint"),
        heartbeat_path=str(tmp_path / "heartbeat.json"),
        available_now=True,
    )

    code = streaming_sink.StreamingSink(spec, system_environment(), threading.Event()).run()
    read = ingest(other, topic, options={**servers, **QUARANTINE, **IGNORE}, format=options["log.format"])

    heartbeat = read_heartbeat(LocalFileIO(), spec.heartbeat_path)
    assert heartbeat is not None
    assert (code, heartbeat.error) == (0, None)
    assert (heartbeat.row_count, heartbeat.rejected_count) == (read.row_count, read.rejected_count)
    assert read.rejected_count > 0
    assert rows_of(mine.refresh()) == rows_of(other.refresh())


def test_a_streaming_insert_of_all_columns_applies_the_records(
    spark: SparkSession, bootstrap_servers: str, tmp_path: Path
) -> None:
    topic = produced(bootstrap_servers, unique_name(tmp_path), recorded("json", "toasted"))
    servers = {"log.kafka.bootstrap.servers": bootstrap_servers}
    mine, other = table_of(tmp_path / "mine", "toasted"), table_of(tmp_path / "other", "toasted")
    read_changelog(spark, topic=topic, table=mine, options=servers).createOrReplaceTempView("told")

    with Session(spark, open_catalog(mine.address.warehouse), database="shop") as sql:
        sql.execute("SET 'execution.runtime-mode' = 'streaming'")
        sql.execute("SET 'table.dml-sync' = 'true'")
        hint = f"/*+ OPTIONS('checkpoint-location' = '{tmp_path}/checkpoint', 'available-now' = 'true') */"
        insert = f"INSERT INTO toasted {hint} SELECT * FROM told"  # noqa: S608  a directory of the test
        sql.execute(insert)
        with pytest.raises(InvalidInputError, match=r"applied as they are.*read_changelog\(schema=\.\.\.\)"):
            sql.execute(f"{insert} WHERE id > 1")
    ingest(other, topic, options=servers)

    assert rows_of(mine.refresh()) == rows_of(other.refresh())


def test_records_for_a_table_are_not_rows_of_a_query(
    spark: SparkSession, bootstrap_servers: str, tmp_path: Path
) -> None:
    topic = produced(bootstrap_servers, unique_name(tmp_path), recorded("json", "toasted"))
    table, another = table_of(tmp_path, "toasted"), table_of(tmp_path, "orders")
    options = {"log.kafka.bootstrap.servers": bootstrap_servers}
    df = read_changelog(spark, topic=topic, table=table, options=options)

    def write(changed: DataFrame, into: DynamicTable = table, **arguments: Any) -> None:
        write_stream(changed, into, checkpoint_location=str(tmp_path / "no"), available_now=True, **arguments)

    for changed in (df.where("id > 1"), df.drop("id"), df.selectExpr("*", "1 AS one"), df.union(df)):
        with pytest.raises(InvalidInputError, match="applied as they are, so a query can't change them"):
            write(changed)
    rows = read_changelog(spark, topic=topic, schema="id BIGINT", options=options)
    with pytest.raises(
        InvalidInputError, match=r"this stream is a query over rows. Use read_changelog\(table=\.\.\.\)"
    ):
        write(rows, expect=lambda _: {})
    with pytest.raises(InvalidInputError, match="was made for another table"):
        write(df, another)
    for arguments in ({"output_mode": "update"}, {"position_column": "id"}, {"compaction": False}):
        with pytest.raises(InvalidInputError, match=r"read_changelog\(table=\.\.\.\) doesn't go with"):
            write(df, **arguments)
    plain = df.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    with pytest.raises(InvalidInputError, match=r"gives no rows: write_stream\(df"), storage_errors_of_spark():
        plain.start().awaitTermination()
    with pytest.raises(InvalidInputError, match="needs either table="):
        read_changelog(spark, topic=topic, options=options)


def produced(servers: str, topic: str, records: Sequence[RecordedRecord]) -> str:
    """Write records with their keys into a new topic of one partition; return its name."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(120)
    producer = Producer({"bootstrap.servers": servers})
    for each in records:
        producer.produce(topic, each.value, each.key, partition=0)
    assert producer.flush(120) == 0
    return topic


def table_of(directory: Path, name: str) -> DynamicTable:
    """Create a table of the columns that the database's table has at first."""
    types = recorded_states(name)[0].types
    columns = pa.schema([(column, TYPES[of]) for column, of in types.items() if of in TYPES])
    key = ["id"] if "id" in columns.names else []
    catalog = open_catalog(str(directory / "warehouse"))
    return catalog.create_table(f"shop.{name}", columns, primary_key=key, options={"log.system": "none"})


def rows_of(table: DynamicTable) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.to_arrow().to_pylist()), key=repr)


def rejected_of(table: DynamicTable) -> list[tuple[Any, ...]]:
    kept = [name for name in REJECTED_SCHEMA.names if name != "time_millis"]
    stored = table.inspect.rejected_records().select(kept).to_pylist()
    return sorted((tuple(row.values()) for row in stored), key=repr)
