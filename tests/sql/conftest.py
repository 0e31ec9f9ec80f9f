"""One Spark session for all cases, and a new session of ours over an empty warehouse for each."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from storage_lib import open_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.sql import Session

SPARK_CONF = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Starting a session takes ten seconds, so there is one."""
    from storage_lib.spark import session

    os.environ["PYSPARK_PYTHON"] = sys.executable
    conf = {**SPARK_CONF, "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("spark-warehouse"))}
    spark = session("tests of sql", master="local[2]", conf=conf)
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    """A directory for tables."""
    return str(tmp_path / "warehouse")


@pytest.fixture
def sql(spark: SparkSession, warehouse: str) -> Iterator[Session]:
    """A session without tables."""
    from storage_lib.sql import Session

    with Session(spark, open_catalog(warehouse)) as session:
        yield session
    for table in spark.catalog.listTables("default"):
        if not table.isTemporary:
            spark.sql(f"DROP TABLE default.`{table.name}`")
