"""Queries that Spark's real-time mode does not run are refused before they start, with the remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import pytest

pytest.importorskip("pyspark")

import pyspark
from pyspark.sql import functions as sql

from storage_lib import InvalidInputError
from storage_lib.spark import read_stream, write_stream
from storage_lib.spark.stream.plan.kafka_partitions import CoresInUse, refuse_too_few_cores
from storage_lib.spark.stream.plan.real_time_query import CONNECTOR, refuse_interval, refuse_query
from storage_lib.spark.versions.spark_feature import SparkFeature
from tests.support.fake_environment import FakeClock
from tests.support.spark_features import needs_spark

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = [pytest.mark.spark, needs_spark(SparkFeature.REAL_TIME)]


@pytest.fixture
def rates(spark: SparkSession) -> DataFrame:
    """A stream that is refused as well, but after every refusal of what is done with it."""
    return spark.readStream.format("rate").load().selectExpr("value AS id", "CAST(value AS STRING) AS v")


def with_udf(df: DataFrame) -> DataFrame:
    double = sql.udf(lambda number: number * 2, "long")
    return df.withColumn("id", double("id"))


def with_map(df: DataFrame) -> DataFrame:
    return df.mapInArrow(lambda batches: batches, "id long, v string")


def joined(df: DataFrame) -> DataFrame:
    return df.join(df.sparkSession.range(5), "id")


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (with_udf, r"calls <lambda>\(\), which runs in a Python process\. Use Spark's own functions"),
        (with_map, "runs in a Python process"),
        (joined, r"joins a table that Spark may shuffle\. Join it as pyspark\.sql\.functions\.broadcast\(table\)"),
        (lambda df: df.join(df.selectExpr("id", "v AS w"), "id"), "joins two streams"),
        (lambda df: df.groupBy("id").count(), r"Aggregate combines rows.*output_mode='update'"),
        (lambda df: df.dropDuplicates(["id"]), r"Deduplicate combines rows.*output_mode='update'"),
        (lambda df: df.limit(5), "doesn't run GlobalLimit"),
        (lambda df: df, "reads a stream of rate, and Spark's real-time mode reads Kafka only"),
        (lambda df: df.join(sql.broadcast(df.sparkSession.range(5)), "id"), "a stream of rate"),
    ],
)
def test_a_query_is_refused_in_words(rates: DataFrame, query: Callable[[DataFrame], DataFrame], reason: str) -> None:
    with pytest.raises(InvalidInputError, match=f"^table db.t: real_time=True: .*{reason}.*write without real_time"):
        refuse_query(query(rates), "db.t", output_mode="append")


@needs_spark(SparkFeature.REAL_TIME_SHUFFLES)
def test_an_aggregation_is_refused_for_its_source_alone_in_mode_update(rates: DataFrame) -> None:
    with pytest.raises(InvalidInputError, match="a stream of rate"):
        refuse_query(rates.groupBy("id").count(), "db.t", output_mode="update")


@pytest.mark.parametrize("query", [lambda df: df.groupBy("id").count(), lambda df: df.repartition(2, "id")])
def test_a_query_that_shuffles_is_refused_before_spark_4_3(
    rates: DataFrame, query: Callable[[DataFrame], DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    df = query(rates)
    monkeypatch.setattr(pyspark, "__version__", "4.2.9")

    with pytest.raises(InvalidInputError, match=r"^table db.t: \w+: .+ aggregates or repartitions needs Spark 4\.3"):
        refuse_query(df, "db.t", output_mode="update")


def test_a_stream_of_ours_is_refused(spark: SparkSession, make_table: Callable[..., DynamicTable]) -> None:
    df = read_stream(spark, make_table("source", log=True))

    with pytest.raises(InvalidInputError, match=r"stream of this library.*spark\.readStream\.format\('kafka'\)"):
        refuse_query(df, "db.t", output_mode="append")


def test_an_interval_below_sparks_own_limit_is_refused(spark: SparkSession) -> None:
    refuse_interval(spark, "db.t", 5)

    with pytest.raises(InvalidInputError, match=r"trigger_seconds=1 is too short.*takes 5 s or more"):
        refuse_interval(spark, "db.t", 1)


class Query:
    """A streaming query that has ended or not."""

    def __init__(self, *, is_active: bool) -> None:
        self.isActive = is_active


def test_a_source_with_more_partitions_than_cores_is_refused(spark: SparkSession) -> None:
    in_use, ended, clock = CoresInUse(), Query(is_active=True), FakeClock()
    refuse_too_few_cores(spark, "db.t", clock, partitions=2, in_use=in_use.count())
    with pytest.raises(InvalidInputError, match=r"partition of its source, 3, but the session has 2; .*local\[4\]"):
        refuse_too_few_cores(spark, "db.t", clock, partitions=3, in_use=in_use.count())

    in_use.add(cast("Any", ended), 1)
    with pytest.raises(InvalidInputError, match="2, but the session has 2, of which other real-time streams hold 1"):
        refuse_too_few_cores(spark, "db.t", clock, partitions=2, in_use=in_use.count())

    ended.isActive = False
    refuse_too_few_cores(spark, "db.t", clock, partitions=2, in_use=in_use.count())


def started(df: DataFrame, table: DynamicTable, directory: Path, **arguments: Any) -> None:
    write_stream(df, table, checkpoint_location=str(directory / "checkpoint"), real_time=True, **arguments)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"output_mode": "complete"}, "doesn't go with output_mode='complete'"),
        ({"available_now": True}, "doesn't go with available_now=True"),
        ({"change_tracking": False}, "doesn't go with change_tracking=False"),
        ({"position_column": "n"}, "doesn't go with position_column"),
    ],
)
def test_an_argument_that_means_nothing_there_is_refused(
    rates: DataFrame,
    make_table: Callable[..., DynamicTable],
    tmp_path: Path,
    arguments: dict[str, Any],
    reason: str,
) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        started(rates, make_table(), tmp_path, **arguments)


def test_a_session_without_the_connector_is_told_its_package(
    rates: DataFrame, make_table: Callable[..., DynamicTable], tmp_path: Path
) -> None:
    table = make_table(log=True, log__consistency="eventual")

    with pytest.raises(InvalidInputError, match=rf"spark\.jars\.packages.*{CONNECTOR}"):
        started(rates, table, tmp_path)
    assert not (tmp_path / "checkpoint").exists()


def test_a_table_whose_log_is_not_written_first_is_refused(
    rates: DataFrame, make_table: Callable[..., DynamicTable], tmp_path: Path
) -> None:
    for table in (make_table("silent"), make_table("transactional", log=True)):
        with pytest.raises(InvalidInputError, match=r"Use a table with log\.consistency=eventual"):
            started(rates, table, tmp_path)
