"""Batch and stream on a standalone cluster of separate processes: a master, two workers, their executors."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from tests.support.spark_cluster import QUICK_EXECUTORS, spark_cluster
from tests.support.spark_processes import clean_environment

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(900)]

SUPPORT = Path(__file__).parents[1] / "support"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """Start a master with two single-core workers on this machine and yield its address."""
    with spark_cluster(tmp_path, workers=2) as master:
        yield master


def test_write_stream_compact_and_read_on_a_cluster(
    cluster: str, make_table: Callable[..., DynamicTable], spark_conf: dict[str, str], tmp_path: Path
) -> None:
    table = make_table(log=True, bucket=2)
    job = {
        "master": cluster,
        "warehouse": table.address.warehouse,
        "catalog_options": dict(table.address.options),
        "table": table.name,
        "conf": {**spark_conf, "spark.executor.memory": "700m", "spark.executor.cores": "1", **QUICK_EXECUTORS},
        "directory": str(tmp_path),
    }

    driver = subprocess.run(
        [sys.executable, str(SUPPORT / "spark_cluster_job.py"), json.dumps(job)],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )

    assert driver.returncode == 0, driver.stderr[-4000:]
    said = json.loads(driver.stdout.splitlines()[-1])
    assert said["hosts"] == 2, "both workers' executors took part"
    assert said["files_before"] > said["files_after"] == 2
    assert said["rows"] == 1000
    assert {row["v"] for row in table.to_arrow(columns=["v"]).to_pylist()} == {"batch", "stream"}
