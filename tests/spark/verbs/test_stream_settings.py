"""A stream starts with settings for quick batches, unless the session sets others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.functions import broadcast

from storage_lib.spark import write_stream
from storage_lib.spark.verbs.stream_settings import may_shuffle
from storage_lib.spark.versions.jvm_packages import CHECKPOINTING
from storage_lib.spark.versions.spark_feature import installed_since

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = pytest.mark.spark

ADAPTIVE = "spark.sql.adaptive.streaming.stateless.enabled"
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
REPLANS_STREAMS = installed_since(4, 1)
BY_JAVA, BY_FILE_CONTEXT = "FileSystemBasedCheckpointFileManager", "FileContextBasedCheckpointFileManager"


@pytest.fixture
def _own_settings(spark: SparkSession) -> Iterator[None]:
    own = {MANAGER: f"{CHECKPOINTING}.{BY_FILE_CONTEXT}", ADAPTIVE: "true"}
    for key, value in own.items():
        spark.conf.set(key, value)
    yield
    for key in own:
        spark.conf.unset(key)


def test_a_batch_is_planned_once_and_noted_on_this_machine_by_java_alone(
    spark: SparkSession, make_table: Callable[..., DynamicTable], tmp_path: Path
) -> None:
    assert settings_of_a_stream(spark, make_table(), tmp_path) == (BY_JAVA, False)
    for key in (MANAGER, ADAPTIVE):
        assert spark.conf.get(key, None) is None, "other streams of the session are not ours to change"


def test_a_query_that_shuffles_by_itself_is_planned_as_it_goes_on(
    spark: SparkSession, make_table: Callable[..., DynamicTable], tmp_path: Path
) -> None:
    names = spark.createDataFrame([(1, "a")], "id long, v string")

    def joined(rows: DataFrame) -> DataFrame:
        return rows.drop("v").join(names.hint("shuffle_hash"), "id", "left").select("id", "v", "n")

    assert settings_of_a_stream(spark, make_table(), tmp_path, joined) == (BY_JAVA, REPLANS_STREAMS)


@pytest.mark.parametrize(
    ("query", "shuffles"),
    [
        ("SELECT id, upper(v) AS v FROM rows WHERE n > 1 UNION ALL SELECT id, v FROM rows", False),
        ("SELECT rows.id FROM rows JOIN names USING (id)", True),
        ("SELECT /*+ BROADCAST(names) */ rows.id FROM rows JOIN names USING (id)", False),
        ("SELECT id FROM rows WHERE id IN (SELECT id FROM names)", True),
        ("SELECT id, count(*) FROM rows GROUP BY id", True),
        ("SELECT /*+ REPARTITION(3) */ id FROM rows", True),
    ],
)
def test_what_spark_shuffles_for_is_seen_in_the_query(
    spark: SparkSession, tmp_path: Path, query: str, *, shuffles: bool
) -> None:
    spark.readStream.schema("id long, v string, n int").json(str(tmp_path)).createOrReplaceTempView("rows")
    names = spark.createDataFrame([(1, "a")], "id long, v string")
    names.createOrReplaceTempView("names")

    assert may_shuffle(spark.sql(query)) is shuffles
    assert may_shuffle(spark.table("rows").join(broadcast(names), "id")) is False
    assert may_shuffle(spark.table("rows").join(broadcast(names.distinct()), "id")) is True


@pytest.mark.usefixtures("_own_settings")
def test_what_the_session_says_wins(
    spark: SparkSession, make_table: Callable[..., DynamicTable], tmp_path: Path
) -> None:
    assert settings_of_a_stream(spark, make_table(), tmp_path) == (BY_FILE_CONTEXT, REPLANS_STREAMS)
    assert (spark.conf.get(MANAGER), spark.conf.get(ADAPTIVE)) == (f"{CHECKPOINTING}.{BY_FILE_CONTEXT}", "true")


def settings_of_a_stream(
    spark: SparkSession,
    table: DynamicTable,
    directory: Path,
    query: Callable[[DataFrame], DataFrame] = lambda rows: rows,
) -> tuple[str, bool]:
    """Return the class that wrote the stream's checkpoint, and whether its last batch was replanned."""
    (directory / "input").mkdir()
    (directory / "input" / "0.json").write_text(json.dumps({"id": 1, "v": "a", "n": 1}))
    rows = spark.readStream.schema("id long, v string, n int").json(str(directory / "input"))
    stream = write_stream(query(rows), table, checkpoint_location=str(directory / "checkpoint"), compaction=False)
    try:
        stream.processAllAvailable()
        execution: Any = stream.query._jsq.streamingQuery()
        name: str = execution.commitLog().fileManager().getClass().getSimpleName()
        is_adaptive = "AdaptiveSparkPlan" in execution.lastExecution().executedPlan().toString()
    finally:
        stream.stop()
    assert (directory / "checkpoint" / "commits" / "0").exists()
    assert table.to_arrow()["id"].to_pylist() == [1]
    return name, is_adaptive
