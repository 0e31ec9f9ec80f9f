"""Memory of a driver whose tables are larger: rows stay in the executors, and only metadata reaches the driver."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from tests.support.deep_tests import thinned
from tests.support.spark_cluster import QUICK_EXECUTORS, spark_cluster
from tests.support.spark_memory_job import LETTERS
from tests.support.spark_processes import REPOSITORY, clean_environment

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(900)]

JOB = REPOSITORY / "tests" / "support" / "spark_memory_job.py"
ROWS = ((10_000, 70_000), (1000, 60_000, 340_000))
"""Of the second row, the largest table exceeds the heap of the driver; the first one starts what each size needs."""
MIB = 1 << 20


@pytest.mark.parametrize("row_counts", thinned(ROWS), ids=["growing", "larger than the memory"])
def test_the_memory_of_a_driver_does_not_grow_with_the_table(
    spark_conf: dict[str, str], tmp_path: Path, row_counts: tuple[int, ...]
) -> None:
    conf = {
        **spark_conf,
        "spark.driver.memory": "512m",
        # Spark fails a job whose tasks return more than this.
        "spark.driver.maxResultSize": "1m",
        "spark.executor.memory": "700m",
        **QUICK_EXECUTORS,
    }

    with spark_cluster(tmp_path, workers=1) as cluster:
        job = {"master": cluster.master, "conf": conf, "warehouse": str(tmp_path / "warehouse"), "rows": row_counts}
        driver = subprocess.run(
            [sys.executable, str(JOB), json.dumps(job)],
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=800,
            check=False,
        )

    assert driver.returncode == 0, driver.stderr[-4000:]
    said = json.loads(driver.stdout.splitlines()[-1])
    small, large = said["sizes"][-2:]
    for rows, size in zip(row_counts, said["sizes"], strict=True):
        assert (size["rows"], size["letters"], size["upserted"]) == (rows, rows * LETTERS, rows // 2)
    print(
        f"heap {said['heap_bytes'] // MIB} MiB, Python {small['peak_bytes'] // MIB}, {large['peak_bytes'] // MIB} MiB"
    )
    assert small["peak_bytes"] > 50 * MIB, "the driver's own process was sampled"
    if row_counts == ROWS[-1]:
        assert large["letters"] > said["heap_bytes"]
    assert large["letters"] - small["letters"] > 80 * MIB
    assert large["peak_bytes"] - small["peak_bytes"] < 40 * MIB, "Python's memory does not grow with the table"
