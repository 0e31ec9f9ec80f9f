"""An external CDC topic as a stream."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import StructType

from storage_lib import open_catalog
from storage_lib.errors import InvalidInputError
from storage_lib.spark import read_changelog, write_stream
from storage_lib.spark.data_source.changelog_source import ChangelogSource
from storage_lib.spark.types.spark_errors import storage_errors_of_spark
from tests.support.shared_server import unique_name
from tests.support.spark_features import rows_limit
from tests.support.spark_topics import produce

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

pytestmark = pytest.mark.spark


def rows_of(df: DataFrame, checkpoint: Path) -> list[tuple[Any, ...]]:
    """Return all rows not yet read under this checkpoint, in order."""
    seen: list[tuple[Any, ...]] = []
    query = (
        df.writeStream.foreachBatch(lambda batch, _: seen.extend(tuple(row) for row in batch.collect()))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(240)
    return seen


def test_every_change_comes_once_with_its_kind_also_after_a_restart(
    spark: SparkSession, bootstrap_servers: str, tmp_path: Path
) -> None:
    topic = f"cdc-{unique_name(tmp_path)}"
    row = {"id": 1, "v": "a", "unasked": 5}
    produce(
        bootstrap_servers,
        topic,
        {"before": None, "after": row, "op": "r"},
        {"before": row, "after": {**row, "v": "b"}, "op": "u"},
        None,
        {"before": {**row, "v": "b"}, "after": None, "op": "d", "ts_ms": 5},
    )
    df = read_changelog(
        spark,
        topic=topic,
        schema="id BIGINT, v STRING",
        options={"log.kafka.bootstrap.servers": bootstrap_servers},
        rows_per_trigger_max=rows_limit(2),
    )

    assert df.columns == ["id", "v", "_row_kind"]
    assert rows_of(df, tmp_path / "checkpoint") == [(1, "a", "+I"), (1, "a", "-U"), (1, "b", "+U"), (1, "b", "-D")]
    produce(bootstrap_servers, topic, {"before": None, "after": row, "op": "c"})
    assert rows_of(df, tmp_path / "checkpoint") == [(1, "a", "+I")]


def test_a_stream_may_start_at_the_end(spark: SparkSession, bootstrap_servers: str, tmp_path: Path) -> None:
    topic = f"cdc-{unique_name(tmp_path)}"
    produce(bootstrap_servers, topic, {"before": None, "after": {"id": 1}, "op": "c"})
    df = (
        spark.readStream.format("debezium_json")
        .schema("id BIGINT, _row_kind STRING")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("log.scan", "latest")
        .load(topic)
    )

    assert rows_of(df, tmp_path / "checkpoint") == []
    produce(bootstrap_servers, topic, {"before": None, "after": {"id": 2}, "op": "c"})
    assert rows_of(df, tmp_path / "checkpoint") == [(2, "+I")]


def test_a_schema_without_the_row_kind_is_refused(spark: SparkSession, bootstrap_servers: str, tmp_path: Path) -> None:
    def reader() -> DataStreamReader:
        return spark.readStream.format("debezium_json").option("kafka.bootstrap.servers", bootstrap_servers)

    with pytest.raises(InvalidInputError, match="_row_kind STRING"), storage_errors_of_spark():
        rows_of(reader().schema("id BIGINT").load("some-topic"), tmp_path / "checkpoint")
    with pytest.raises(InvalidInputError, match="needs the columns"), storage_errors_of_spark():
        reader().load("some-topic")


def test_columns_are_filled_from_metadata_in_a_stream_whose_key_is_known(
    spark: SparkSession, bootstrap_servers: str, tmp_path: Path
) -> None:
    topic = f"cdc-{unique_name(tmp_path)}"
    row, source = {"id": 1, "v": "a", "ordinal": "not read"}, {"lsn": 8, "ts_ms": 5}
    produce(
        bootstrap_servers,
        topic,
        {"before": None, "after": row, "op": "c", "source": source},
        {"before": row, "after": None, "op": "d", "source": {"lsn": 9}},
    )
    options = {
        "log.kafka.bootstrap.servers": bootstrap_servers,
        "primary-key": "id",
        "source.metadata": "ordinal = value.source.lsn, at = value.source.ts_ms",
        "sequence.field": "ordinal",
    }
    schema = "id BIGINT, v STRING, ordinal BIGINT, at BIGINT"

    df = read_changelog(spark, topic=topic, schema=schema, options=options)

    assert rows_of(df, tmp_path / "checkpoint") == [(1, "a", 8, 5, "+I"), (1, "a", 9, None, "-D")]
    columns = {"id": "BIGINT NOT NULL", "v": "STRING", "ordinal": "BIGINT", "at": "BIGINT"}
    ordered = {"sequence.field": "ordinal", "log.system": "none"}
    table = open_catalog(str(tmp_path)).create_table("shop.items", columns, primary_key=["id"], options=ordered)
    untold = read_changelog(spark, topic=topic, schema=schema, options={**options, "sequence.field": ""})
    with pytest.raises(InvalidInputError, match=r"the option sequence\.field=ordinal"):
        write_stream(untold, table, checkpoint_location=str(tmp_path / "into"), available_now=True)
    write_stream(df, table, checkpoint_location=str(tmp_path / "into"), available_now=True).awaitTermination()
    assert table.refresh().count() == 0


def test_columns_are_not_filled_from_metadata_in_a_stream_without_a_key() -> None:
    schema = StructType().add("id", "long").add("lsn", "long").add("_row_kind", "string")
    source = ChangelogSource({"topic": "t", "source.metadata": "lsn = value.source.lsn"})

    with pytest.raises(InvalidInputError, match=r"needs the key of the rows, option primary-key"):
        source.streamReader(schema)


@pytest.mark.parametrize(
    "option", ["source.on-reject=quarantine", "source.reject-max=5", "source.schema-change=evolve"]
)
def test_a_stream_of_rows_refuses_what_needs_the_table(option: str) -> None:
    schema = StructType().add("id", "long").add("_row_kind", "string")
    key, _, value = option.partition("=")
    given = {"topic": "t", "log.kafka.bootstrap.servers": "nowhere:9092", key: value}

    with pytest.raises(InvalidInputError, match=rf"a stream of rows .*{key}.*|{key}.*ingest\(\)"):
        ChangelogSource(given).streamReader(schema)
    ChangelogSource({**given, "table.uuid": "u"}).streamReader(schema)
