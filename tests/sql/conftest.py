"""A new SQL session over an empty warehouse for each case."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from storage_lib import open_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.sql import Session


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    """Return a directory for tables."""
    return str(tmp_path / "warehouse")


@pytest.fixture
def sql(spark: SparkSession, warehouse: str) -> Iterator[Session]:
    """Open a session without tables."""
    from storage_lib.sql import Session

    with Session(spark, open_catalog(warehouse)) as session:
        yield session
    for table in spark.catalog.listTables("default"):
        if not table.isTemporary:
            spark.sql(f"DROP TABLE default.`{table.name}`")
