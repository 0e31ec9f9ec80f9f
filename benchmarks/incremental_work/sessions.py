"""The Spark session of a work, which runs in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from storage_lib.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """Cores, and the driver's heap (``4g``), of a session with its scratch files in ``directory``."""

    cores: int
    memory: str
    directory: Path


@contextmanager
def started_session(settings: SessionSettings) -> Iterator[SparkSession]:
    """Yield a session, and stop it."""
    conf = {
        "spark.driver.memory": settings.memory,
        "spark.local.dir": str(settings.directory / "scratch"),
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(2 * settings.cores),
        "spark.sql.warehouse.dir": str(settings.directory / "spark-warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    spark = session("incremental", master=f"local[{settings.cores}]", conf=conf)
    try:
        yield spark
    finally:
        spark.stop()
