"""What the versions of Spark have: as the installed one shows, and refused by name where it is lacking."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from inspect import signature
from threading import Event
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

import pyspark
from pyspark.errors import StreamingQueryException
from pyspark.sql import types
from pyspark.sql.streaming.readwriter import DataStreamWriter

from storage_lib import InvalidInputError
from storage_lib.io.environment import system_environment
from storage_lib.io.local.local_file_io import LocalFileIO
from storage_lib.spark import read_changelog, read_stream, write_stream
from storage_lib.spark.data_source.changelog_source import ChangelogSource
from storage_lib.spark.data_source.row_limit import refuse_limit
from storage_lib.spark.data_source.statement_options import options_of
from storage_lib.spark.data_source.table_source import DynamicTableSource, register
from storage_lib.spark.stream.sink.sink_heartbeat import read_heartbeat
from storage_lib.spark.stream.sink.sink_spec import SinkSource, SinkSpec
from storage_lib.spark.streaming_sink import StreamingSink
from storage_lib.spark.types.spark_errors import storage_errors_of_spark
from storage_lib.spark.versions import spark_feature
from storage_lib.spark.versions.spark_feature import SparkFeature

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource

    from storage_lib.table.dynamic_table import DynamicTable

SIGNS: dict[SparkFeature, Callable[[], bool]] = {
    SparkFeature.ADMISSION_CONTROL: lambda: find_spec("pyspark.sql.streaming.datasource") is not None,
    SparkFeature.REAL_TIME: lambda: "realTime" in signature(DataStreamWriter.trigger).parameters,
    SparkFeature.TIME: lambda: hasattr(types, "TimeType"),
    SparkFeature.PIPELINES: lambda: find_spec("pyspark.pipelines") is not None,
}


def test_each_feature_has_a_sign_or_a_test_of_its_own() -> None:
    # test_doubled_quotes.py; tests/spark/test_real_time.py
    assert {*SIGNS, SparkFeature.DOUBLED_QUOTES, SparkFeature.REAL_TIME_SHUFFLES} == {*SparkFeature}


@pytest.mark.parametrize("feature", SIGNS)
def test_a_feature_is_in_the_installed_spark_as_its_version_says(feature: SparkFeature) -> None:
    assert SIGNS[feature]() == feature.is_here


@pytest.mark.parametrize("feature", SparkFeature)
def test_a_feature_is_refused_before_its_version_and_not_from_then_on(
    feature: SparkFeature, monkeypatch: pytest.MonkeyPatch
) -> None:
    major, minor = map(int, feature.since.split("."))
    monkeypatch.setattr(pyspark, "__version__", f"{major}.{minor - 1}.9")

    with pytest.raises(
        InvalidInputError, match=rf"^here: {feature.purpose} needs Spark {feature.since}, and pyspark 4\.\d\.9 is"
    ):
        feature.require("here", "Do without")

    monkeypatch.setattr(pyspark, "__version__", f"{feature.since}.0")
    feature.require("here", "Do without")


def test_a_limit_of_rows_is_refused_where_spark_does_not_pass_it_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.1.4")
    refuse_limit("table db.t", "rows_per_trigger_max", None)

    with pytest.raises(InvalidInputError, match=r"^table db\.t: .* needs Spark 4\.2.* Leave rows_per_trigger_max out"):
        refuse_limit("table db.t", "rows_per_trigger_max", 10)


def test_a_limit_of_rows_is_refused_by_the_verb_that_defines_the_stream(
    spark: SparkSession, make_table: Callable[..., DynamicTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table()
    monkeypatch.setattr(pyspark, "__version__", "4.1.4")

    with pytest.raises(InvalidInputError, match=r"^table db\.t: .* Leave rows_per_trigger_max out"):
        read_stream(spark, table, rows_per_trigger_max=10)
    with pytest.raises(InvalidInputError, match=r"^topic orders: .* Leave rows_per_trigger_max out"):
        read_changelog(spark, topic="orders", schema="id BIGINT", options={}, rows_per_trigger_max=10)


@pytest.mark.parametrize("source", [DynamicTableSource, ChangelogSource])
def test_a_limit_of_rows_is_refused_once_spark_creates_the_source(
    source: type[DataSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_feature, "installed_since", lambda *_: False)
    source({"path": "/warehouse/db.db/t"})

    with pytest.raises(InvalidInputError, match=rf'^format\("{source.name()}"\): .* Leave maxRowsPerTrigger out'):
        source({"path": "/warehouse/db.db/t", "MAXrowsPerTrigger": "10"})


def test_a_limit_of_rows_is_refused_where_a_user_defines_the_stream(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    register(spark)
    reader = spark.readStream.format("dynamic_table").options(**options_of(make_table())).option("maxRowsPerTrigger", 9)

    if SparkFeature.ADMISSION_CONTROL.is_here:
        assert reader.load().isStreaming
    else:
        with pytest.raises(InvalidInputError, match="Leave maxRowsPerTrigger out"), storage_errors_of_spark():
            reader.load()


@pytest.mark.skipif(SparkFeature.ADMISSION_CONTROL.is_here, reason="this Spark has limits of micro-batches")
def test_a_limit_of_rows_of_a_stream_with_a_schema_is_its_only_error(spark: SparkSession, tmp_path: Path) -> None:
    """Spark first creates the source as the stream starts."""
    register(spark)
    limited = spark.readStream.format("debezium_json").option("topic", "orders").option("maxRowsPerTrigger", 9)
    writer = limited.schema("id BIGINT, _row_kind STRING").load().writeStream.format("noop")
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()

    with pytest.raises(StreamingQueryException, match="Leave maxRowsPerTrigger out") as refused:
        query.awaitTermination(240)

    assert str(refused.value).count("Traceback") == 1


def test_a_sink_with_a_limit_of_rows_is_refused_before_it_starts_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.1.4")
    spec = SinkSpec(
        warehouse=str(tmp_path / "warehouse"),
        table="db.t",
        source=SinkSource(kind="dynamic_table", name="db.other"),
        checkpoint_location=str(tmp_path / "checkpoint"),
        heartbeat_path=str(tmp_path / "heartbeat.json"),
        max_rows_per_trigger=10,
    )

    assert StreamingSink(spec, system_environment(), Event()).run() == 1

    last = read_heartbeat(LocalFileIO(), spec.heartbeat_path)
    assert last is not None
    assert last.error is not None
    assert last.error.startswith("InvalidInputError: table db.t: a limit of the rows of a micro-batch needs Spark 4.2")
    assert "Leave max_rows_per_trigger out" in last.error


def test_a_real_time_stream_is_refused_by_the_version_that_has_it(
    spark: SparkSession, make_table: Callable[..., DynamicTable], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    df, table = spark.readStream.format("rate").load(), make_table()
    monkeypatch.setattr(pyspark, "__version__", "4.1.4")

    with pytest.raises(InvalidInputError, match=r"^table db\.t: a real-time stream needs Spark 4\.2, and pyspark 4\.1"):
        write_stream(df, table, checkpoint_location=str(tmp_path / "checkpoint"), real_time=True)

    assert not (tmp_path / "checkpoint").exists()
