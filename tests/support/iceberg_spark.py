"""Spark's reader of Iceberg, in an environment of its own and in one JVM for all tests of a session."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

from storage_lib import DynamicTable
from tests.support.iceberg_readers import view_of
from tests.support.line_servant import LineServant

LOCAL = Path(__file__).parents[2] / ".local"
PYTHON = LOCAL / "iceberg_spark" / "bin" / "python"
JARS = LOCAL / "iceberg_runtime" / "lib"
SCRIPT = Path(__file__).with_name("iceberg_spark_script.py")

needs_spark_of_iceberg = pytest.mark.skipif(
    not PYTHON.exists() or not JARS.exists(),
    reason="Iceberg's connector for Spark is not set up: run `python3 docker/local/stack_setup.py iceberg_spark`",
)


def read_by_spark(table: DynamicTable, scratch: Path, snapshot_id: int | None = None) -> pa.Table:
    """Return the rows that Spark sees; raise ``RefusedError`` with its error."""
    out = scratch / "spark.arrow"
    _servant().ask(["rows", view_of(table).directory.root, str(out), snapshot_id])
    with pa.OSFile(str(out)) as file:
        return pa.ipc.open_file(file).read_all()


def counted_by_spark(table: DynamicTable, condition: str | None = None) -> int:
    """Return how many rows Spark counts, of those that match a condition in SQL."""
    more = [] if condition is None else [condition]
    return int(_servant().ask(["count", view_of(table).directory.root, *more])["count"])


@cache
def _servant() -> LineServant:
    log = Path(tempfile.mkdtemp(prefix="iceberg-spark-")) / "said.log"
    return LineServant([PYTHON, SCRIPT], log)
