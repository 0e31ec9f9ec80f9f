"""A stream from an external topic: its offsets are in the table's snapshots, and a checkpoint must agree with them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from storage_lib import CommitConflictError, InvalidInputError, LogOffsetsExpiredError, ingest, open_catalog
from storage_lib.io.environment import system_environment
from storage_lib.io.local.local_file_io import LocalFileIO
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.spark import SinkSource, SinkSpec, read_changelog, streaming_sink, write_stream
from storage_lib.spark.data_source.batch_sources import CheckpointSources
from storage_lib.table.protocol.source_offsets import SourceRange
from tests.support.orders_table import orders, rows
from tests.support.shared_server import unique_name
from tests.support.spark_topics import committed_changes, delete, produce

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.table.dynamic_table import DynamicTable


def change(operation: str, key: int, value: str) -> dict[str, object]:
    row, side = {"id": key, "v": value}, "before" if operation == "d" else "after"
    return {"before": None, "after": None, "op": operation, side: row}


@pytest.mark.spark
def test_a_rollback_rewinds_the_source_and_refuses_the_checkpoint(
    spark: SparkSession, make_table: Callable[..., DynamicTable], bootstrap_servers: str, tmp_path: Path
) -> None:
    table, topic = make_table(log=True), f"cdc-{unique_name(tmp_path)}"
    options = {"log.kafka.bootstrap.servers": bootstrap_servers}

    def stream(checkpoint: str, start: LogOffsets | None = None) -> None:
        df = read_changelog(spark, topic=topic, schema="id BIGINT, v STRING", options=options, start=start)
        location = str(tmp_path / checkpoint)
        write_stream(df, table, checkpoint_location=location, available_now=True, compaction=False).awaitTermination()

    def held() -> dict[int, str]:
        return {row["id"]: row["v"] for row in table.to_arrow().to_pylist()}

    produce(bootstrap_servers, topic, change("c", 1, "a"), change("c", 2, "b"))
    stream("first")
    kept = table.context.file_store.snapshots.latest_id()
    assert table.inspect.source_offsets(topic) == LogOffsets({0: 2})
    # A deletion with its key only: the log must contain the whole row.
    produce(bootstrap_servers, topic, {"before": {"id": 1}, "after": None, "op": "d"}, None)
    stream("first")
    assert committed_changes(table)[-1] == ("d", 1, "a")
    assert (held(), table.inspect.source_offsets(topic)) == ({2: "b"}, LogOffsets({0: 4}))
    assert ingest(table, topic, options=options).row_count == 0

    table.rollback_to(snapshot_id=kept)
    assert table.inspect.source_offsets(topic) == LogOffsets({0: 2})
    with pytest.raises(InvalidInputError, match=r"up to offsets .*2.*continues from offsets .*4.* new checkpoint"):
        stream("first")

    produce(bootstrap_servers, topic, change("c", 3, "c"))
    stream("second", table.inspect.source_offsets(topic))
    assert (held(), table.inspect.source_offsets(topic)) == ({2: "b", 3: "c"}, LogOffsets({0: 5}))


@pytest.mark.spark
def test_a_sink_goes_on_where_a_table_ends_that_was_rolled_back_or_made_anew(
    spark: SparkSession, make_table: Callable[..., DynamicTable], bootstrap_servers: str, tmp_path: Path
) -> None:
    table, topic = make_table(log=True), f"rewound-{unique_name(tmp_path)}"
    spec = SinkSpec(
        warehouse=table.address.warehouse,
        table=table.name,
        source=SinkSource(kind="debezium_json", name=topic, options={"log.scan": "full"}),
        catalog_options=dict(table.address.options),
        checkpoint_location=str(tmp_path / "checkpoint"),
        heartbeat_path=str(tmp_path / "heartbeat.json"),
        available_now=True,
    )

    def held_after_a_run() -> dict[int, str]:
        streaming_sink.StreamingSink(spec, system_environment(), threading.Event())._start().awaitTermination()
        rows = open_catalog(spec.warehouse, dict(spec.catalog_options)).load_table(table.name).to_arrow().to_pylist()
        return {row["id"]: row["v"] for row in rows}

    def checkpoints() -> list[str]:
        return sorted(path.name for path in tmp_path.glob("checkpoint*"))

    produce(bootstrap_servers, topic, change("c", 1, "a"))
    assert held_after_a_run() == {1: "a"}
    kept = table.context.file_store.snapshots.latest_id()
    produce(bootstrap_servers, topic, change("u", 1, "b"))
    assert held_after_a_run() == {1: "b"}
    assert checkpoints() == ["checkpoint"]

    table.rollback_to(snapshot_id=kept)
    for _ in range(2):
        assert held_after_a_run() == {1: "b"}
    assert checkpoints() == ["checkpoint", "checkpoint-2"]
    assert committed_changes(table)[-1][0] == "u"

    catalog = open_catalog(spec.warehouse, dict(spec.catalog_options))
    catalog.drop_table(table.name)
    catalog.create_table(table.name, {"id": "BIGINT", "v": "STRING"}, primary_key=["id"])
    assert held_after_a_run() == {1: "b"}
    assert checkpoints() == ["checkpoint", "checkpoint-2", "checkpoint-3"]


@pytest.mark.spark
def test_a_stream_does_not_go_on_in_the_middle_of_a_topic_that_was_made_anew(
    spark: SparkSession, make_table: Callable[..., DynamicTable], bootstrap_servers: str, tmp_path: Path
) -> None:
    table, topic = make_table(log=True), f"anew-{unique_name(tmp_path)}"
    options = {"log.kafka.bootstrap.servers": bootstrap_servers}

    def stream(checkpoint: str, start: LogOffsets | None = None) -> None:
        df = read_changelog(spark, topic=topic, schema="id BIGINT, v STRING", options=options, start=start)
        location = str(tmp_path / checkpoint)
        write_stream(df, table, checkpoint_location=location, available_now=True, compaction=False).awaitTermination()

    produce(bootstrap_servers, topic, change("c", 1, "a"), change("c", 2, "b"))
    stream("first")
    reached = table.inspect.source_offsets(topic)
    delete(bootstrap_servers, topic)
    produce(bootstrap_servers, topic, *(change("c", key, "c") for key in (3, 4, 5)))

    for place, start in (("first", None), ("second", reached)):
        with pytest.raises(LogOffsetsExpiredError, match=r"topic .* was deleted and recreated"):
            stream(place, start)

    assert ingest(table, topic, options=options, skip_expired=True).row_count == 3
    produce(bootstrap_servers, topic, change("c", 6, "d"))
    with pytest.raises(InvalidInputError, match="new checkpoint"):
        stream("first")
    stream("third", table.inspect.source_offsets(topic))
    assert {row["id"] for row in table.to_arrow().to_pylist()} == {1, 2, 3, 4, 5, 6}


def checkpoint(directory: Path, *batches: str, done: int) -> CheckpointSources:
    """Write a checkpoint as Spark does: lines for a topic, another source, and a source that has not begun."""
    for name in ("offsets", "commits"):
        (directory / name).mkdir(parents=True)
    for batch_id, line in enumerate(batches):
        (directory / "offsets" / str(batch_id)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n5\n{line}\n-')
    for batch_id in range(done):
        (directory / "commits" / str(batch_id)).write_text("v1\n{}")
    return CheckpointSources(LocalFileIO(), str(directory))


def test_a_batch_holds_what_lies_between_its_offsets_and_those_before_it(tmp_path: Path) -> None:
    sources = checkpoint(tmp_path, '{"0":5,"source":"cdc"}', '{"0":9,"1":1,"source":"cdc"}', '{"0":10}', done=0)

    assert sources.ranges(0) == (SourceRange(source="cdc", start=None, end=LogOffsets({0: 5})),)
    assert sources.ranges(1) == (SourceRange(source="cdc", start=LogOffsets({0: 5}), end=LogOffsets({0: 9, 1: 1})),)
    assert sources.ranges(2) == sources.ranges(3) == ()


@pytest.mark.parametrize(
    ("done", "reached", "agrees"),
    [(2, 9, True), (2, 5, False), (2, None, False), (1, 9, True), (1, 5, True), (1, 7, False), (0, None, True)],
)
def test_a_checkpoint_agrees_with_a_table_that_ends_where_it_goes_on(
    tmp_path: Path, done: int, reached: int | None, *, agrees: bool
) -> None:
    lines = ['{"0":5,"source":"cdc"}', '{"0":9,"source":"cdc"}'][: max(done, 1) if reached is None and done == 0 else 2]
    sources, table = checkpoint(tmp_path, *lines, done=done), orders(None)
    if reached is not None:
        table.append(rows("+I a 1 1"), source=SourceRange(source="cdc", start=None, end=LogOffsets({0: reached})))

    if agrees:
        sources.refuse_another_past(table)
    else:
        with pytest.raises(InvalidInputError, match="new checkpoint_location"):
            sources.refuse_another_past(table)


def test_the_same_numbers_in_another_topic_are_told_apart(tmp_path: Path) -> None:
    sources, table = checkpoint(tmp_path, '{"0":5,"source":"cdc","topic-id":"first"}', done=1), orders(None)
    end = LogOffsets({0: 5}, "second")
    table.append(rows("+I a 1 1"), source=SourceRange(source="cdc", start=None, end=end))

    with pytest.raises(InvalidInputError, match=r"of topic second, but .* from offsets .* of topic first"):
        sources.refuse_another_past(table)
    stale = SourceRange(source="cdc", start=LogOffsets({0: 5}, "first"), end=LogOffsets({0: 6}, "first"))
    with pytest.raises(CommitConflictError, match=r"from offsets .* of topic first on, but .* of topic second"):
        table.append(rows("+I a 1 1"), source=stale)


def test_who_does_not_tell_how_far_he_has_read_is_refused_where_another_does(tmp_path: Path) -> None:
    sources, table = checkpoint(tmp_path, '{"0":5,"source":"cdc"}', '{"0":9,"source":"cdc"}', done=1), orders(None)
    sources.refuse_reported_sources(table)
    table.append(rows("+I a 1 1"), source=SourceRange(source="other", start=None, end=LogOffsets({0: 1})))
    sources.refuse_reported_sources(table, 0)
    table.append(rows("+I a 1 1"), source=SourceRange(source="cdc", start=None, end=LogOffsets({0: 5})))

    for batch_id in (None, 0):
        with pytest.raises(
            InvalidInputError, match=r"'cdc' up to offsets .*5.*would come again.*source=<another name>"
        ):
            sources.refuse_reported_sources(table, batch_id)


@pytest.mark.spark
@pytest.mark.parametrize(("mode", "options"), [("update", {}), ("append", {"log__consistency": "eventual"})])
def test_such_a_stream_ends_before_it_writes_a_row(
    spark: SparkSession,
    make_table: Callable[..., DynamicTable],
    bootstrap_servers: str,
    tmp_path: Path,
    mode: str,
    options: dict[str, str],
) -> None:
    table, topic = make_table(log=True, **options), f"cdc-{unique_name(tmp_path)}"
    client = {"log.kafka.bootstrap.servers": bootstrap_servers}
    produce(bootstrap_servers, topic, change("c", 1, "a"))
    ingest(table, topic, options=client)
    df = read_changelog(spark, topic=topic, schema="id BIGINT, v STRING", options=client)
    stream = write_stream(
        df, table, checkpoint_location=str(tmp_path / "c"), output_mode=mode, available_now=True, compaction=False
    )

    with pytest.raises(InvalidInputError, match="would come again"):
        stream.awaitTermination(240)

    assert committed_changes(table) == [("c", 1, "a")]


@pytest.mark.parametrize(("mode", "continues"), [("append", True), ("update", False)])
def test_a_sink_begins_where_the_table_ends_unless_spark_has_a_state(
    monkeypatch: pytest.MonkeyPatch, mode: str, *, continues: bool
) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(streaming_sink, "read_changelog", lambda _, **named: asked.append(named))
    table, ends = orders(None), LogOffsets({0: 7})
    table.append(rows("+I a 1 1"), source=SourceRange(source="theirs", start=None, end=ends))
    source = SinkSource(kind="debezium_json", name="cdc", options={"source": "theirs", "log.format": "debezium-avro"})
    spec = SinkSpec(
        warehouse="w", table="db.t", source=source, checkpoint_location="c", heartbeat_path="h", output_mode=mode
    )
    nothing: Any = None

    streaming_sink._source(nothing, nothing, table, spec)

    (named,) = asked
    assert named["start"] == (ends if continues else None)
    assert named["topic"] == "cdc"
    assert (named["options"]["log.format"], named["options"]["primary-key"]) == ("debezium-avro", "dt,id")
