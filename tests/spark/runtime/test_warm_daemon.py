"""The processes that Spark forks for a local session start with the library imported."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_worker_begins_with_what_tasks_import_and_with_nothing_to_collect_of_it(spark: SparkSession) -> None:
    wanted = ["storage_lib.spark.data_source.stream_writer", "storage_lib.spark.data_source.batch_reader", "pandas"]

    def look(_: int) -> tuple[list[str], int]:
        return [name for name in wanted if name in sys.modules], gc.get_freeze_count()

    ((imported, frozen_count),) = spark.sparkContext.parallelize([0], 1).map(look).collect()

    assert imported == wanted
    assert frozen_count > 100_000


def test_a_master_elsewhere_runs_spark_s_own_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql import SparkSession

    from storage_lib.spark.runtime import spark_session

    asked: list[dict[str, str]] = []

    class NoSession(SparkSession.Builder):
        def getOrCreate(self) -> SparkSession:  # noqa: N802  Spark's name
            asked.append(dict(self._options))
            return None  # type: ignore[return-value]

    monkeypatch.setattr(SparkSession, "builder", NoSession())
    monkeypatch.setattr(spark_session, "register", lambda _: None)
    monkeypatch.setattr(spark_session, "private_scratch_directory", lambda _: None)  # starts a JVM
    spark_session.session(master="spark://127.0.0.1:7077")
    spark_session.session(master="local[3]")

    assert [options.get("spark.python.daemon.module") for options in asked] == [
        None,
        "storage_lib.spark.runtime.warm_daemon",
    ]
