"""SIGKILL of a refresh leaves the old rows or the new ones, with their positions, and the next refresh continues."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib.spark import create_materialized_table, refresh
from tests.support.deep_tests import thinned
from tests.support.materialized_answers import expected_bag, stored_bag
from tests.support.refreshing_process import KILL_POINTS
from tests.support.spark_processes import warm_environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.catalog.catalog import Catalog

SCRIPT = Path(__file__).parents[2] / "support" / "refreshing_process.py"
pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize(
    "points", thinned([("accumulated", "committed"), KILL_POINTS]), ids=["around the commit", "all"]
)
def test_a_killed_refresh_leaves_nothing_or_everything(
    spark: SparkSession, spark_conf: dict[str, str], catalog: Catalog, points: tuple[str, ...]
) -> None:
    orders = catalog.create_table("shop.orders", {"id": "INT NOT NULL", "n": "INT"}, primary_key=["id"])
    orders.append([{"id": number, "n": number % 3} for number in range(9)])
    query = "SELECT coalesce(n, 0) AS n, count(*) AS c FROM orders GROUP BY coalesce(n, 0)"
    counts = create_materialized_table(
        catalog,
        "shop.counts",
        query,
        spark=spark,
        options={"lease.timeout": "2 s", "accumulators.rows-min": "0"},
        primary_key=["n"],
    )
    refresh(spark, counts)

    for number, point in enumerate(points):
        before = counts.inspect.latest_snapshot_id() or 0
        orders.upsert([{"id": number, "n": 7}])
        job = {"warehouse": catalog.warehouse, "table": counts.name, "conf": spark_conf, "point": point}
        with subprocess.Popen(
            [sys.executable, str(SCRIPT), json.dumps(job)],
            env=warm_environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as driver:
            _, stderr = driver.communicate(timeout=300)

        assert driver.returncode == -signal.SIGKILL, stderr[-3000:]
        assert counts.inspect.latest_snapshot_id() == before + (point == "committed")
        assert stored_bag(counts) == expected_bag(catalog, counts), point
        result = refresh(spark, counts)
        assert result.mode == ("none" if point == "committed" else "incremental"), point
        assert stored_bag(counts) == expected_bag(catalog, counts), point

    assert stored_bag(counts)[7, len(points)] == 1
    orphans = counts.maintenance.remove_orphan_files(older_than=timedelta(0), dry_run=True)
    assert orphans.paths == ()
