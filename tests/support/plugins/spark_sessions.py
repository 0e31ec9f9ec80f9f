"""The session's Spark session: small, quiet, and quick to start."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from quick_spark import quick_spark
from tests.support.extras import needed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_CONF = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}

# Every Spark that a test starts, in this process or in another, runs for seconds only.
os.environ.update(quick_spark())


@pytest.fixture(scope="session")
def spark_conf(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Settings that keep a Spark session small and quiet."""
    return {**SPARK_CONF, "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("spark-warehouse"))}


@pytest.fixture(scope="session")
def spark(spark_conf: dict[str, str]) -> Iterator[SparkSession]:
    """Spark session shared by all tests, since starting one takes ten seconds."""
    needed("pyspark")
    from storage_lib.spark import session

    spark = session("tests", master="local[2]", conf=spark_conf)
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()


@pytest.fixture(autouse=True)
def _spark_keeps_running() -> Iterator[None]:
    """Fail a test that stops the session of the tests that come after it in the same process."""
    pyspark = sys.modules.get("pyspark")
    before = pyspark.SparkContext._active_spark_context if pyspark else None
    yield
    if before is not None and before._jsc is None:
        pytest.fail("the test stopped a Spark session that it had not started")
