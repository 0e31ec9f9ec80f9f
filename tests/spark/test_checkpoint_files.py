"""A stream's own notes are written without a dozen commands started for each file, unless the session says how."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from storage_lib.spark import write_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = pytest.mark.spark

MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
PACKAGE = "org.apache.spark.sql.execution.streaming.checkpointing"
BY_JAVA, BY_FILE_CONTEXT = "FileSystemBasedCheckpointFileManager", "FileContextBasedCheckpointFileManager"


@pytest.fixture
def _own_manager(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(MANAGER, f"{PACKAGE}.{BY_FILE_CONTEXT}")
    yield
    spark.conf.unset(MANAGER)


def test_a_checkpoint_on_this_machine_is_written_by_java_alone(
    spark: SparkSession, make_table: Callable[..., DynamicTable], tmp_path: Path
) -> None:
    assert manager_of_a_stream(spark, make_table(), tmp_path) == BY_JAVA
    assert spark.conf.get(MANAGER, None) is None, "other streams of the session are not ours to change"


@pytest.mark.usefixtures("_own_manager")
def test_what_the_session_says_wins(
    spark: SparkSession, make_table: Callable[..., DynamicTable], tmp_path: Path
) -> None:
    assert manager_of_a_stream(spark, make_table(), tmp_path) == BY_FILE_CONTEXT
    assert spark.conf.get(MANAGER) == f"{PACKAGE}.{BY_FILE_CONTEXT}"


def manager_of_a_stream(spark: SparkSession, table: DynamicTable, directory: Path) -> str:
    """The class by which a stream wrote its notes, once they are written."""
    (directory / "input").mkdir()
    (directory / "input" / "0.json").write_text(json.dumps({"id": 1, "v": "a", "n": 1}))
    rows = spark.readStream.schema("id long, v string, n int").json(str(directory / "input"))
    stream = write_stream(rows, table, checkpoint_location=str(directory / "checkpoint"), compaction=False)
    try:
        stream.processAllAvailable()
        execution: Any = stream.query._jsq.streamingQuery()
        name: str = execution.commitLog().fileManager().getClass().getSimpleName()
    finally:
        stream.stop()
    assert (directory / "checkpoint" / "commits" / "0").exists()
    assert table.to_arrow()["id"].to_pylist() == [1]
    return name
