"""SIGKILL of a refresher at any moment leaves a chain and a diamond of tables exact, and the next one continues."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib.materialized.service.staleness import staleness
from storage_lib.materialized.sources.own_source import lineage
from storage_lib.spark import create_materialized_table
from tests.support.deep_tests import thinned
from tests.support.materialized_answers import expected_bag, stored_bag
from tests.support.spark_processes import warm_environment

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from storage_lib.catalog.catalog import Catalog
    from storage_lib.table.dynamic_table import DynamicTable

TABLES = {
    # A chain of five ...
    "shop.priced": "SELECT id, cat, n * 2 AS price FROM orders WHERE n > 1",
    "shop.named": "SELECT p.id, c.name, p.price FROM priced p JOIN category c ON p.cat = c.cat",
    "shop.per_name": "SELECT name, count(*) AS orders, sum(price) AS total FROM named GROUP BY name",
    "shop.large": "SELECT name, total FROM per_name WHERE total > 20",
    "shop.names": "SELECT count(*) AS large, max(total) AS most FROM large",
    # ... and a diamond: both sides derive from orders.
    "shop.per_cat": "SELECT cat, count(*) AS orders FROM orders GROUP BY cat",
    "shop.shares": (
        "SELECT n.name, n.orders, o.orders AS of_cat FROM per_name n JOIN category c ON c.name = n.name "
        "JOIN per_cat o ON o.cat = c.cat"
    ),
}
LINES = ((2, 5), (2, 5, 9, 1))
"""After how many refreshes each refresher is killed."""

SECONDS_MAX = 0.6


@pytest.mark.timeout(900)
@pytest.mark.parametrize("lines", thinned(LINES), ids=str)
def test_a_chain_and_a_diamond_survive_kills(
    spark: SparkSession, spark_conf: dict[str, str], catalog: Catalog, tmp_path: Path, lines: tuple[int, ...]
) -> None:
    _keep_through_kills(spark, spark_conf, catalog, tmp_path, lines)


@pytest.mark.drill
@pytest.mark.timeout(3600)
def test_a_chain_and_a_diamond_survive_many_kills(
    spark: SparkSession, spark_conf: dict[str, str], catalog: Catalog, tmp_path: Path
) -> None:
    rng = random.Random(7)  # noqa: S311  chance, not secrets
    _keep_through_kills(spark, spark_conf, catalog, tmp_path, [rng.randrange(15) for _ in range(60)])


def _keep_through_kills(
    spark: SparkSession, spark_conf: dict[str, str], catalog: Catalog, directory: Path, lines: Sequence[int]
) -> None:
    rng = random.Random(5)  # noqa: S311  chance, not secrets
    orders = catalog.create_table(
        "shop.orders", {"id": "INT NOT NULL", "cat": "INT", "n": "INT"}, primary_key=["id"], options={"bucket": "2"}
    )
    category = catalog.create_table("shop.category", {"cat": "INT NOT NULL", "name": "STRING"}, primary_key=["cat"])
    category.append([{"cat": cat, "name": f"name {cat % 3}"} for cat in range(5)])
    options = {"lease.timeout": "2 s"}
    tables = {
        name: create_materialized_table(catalog, name, query, spark=spark, options=options)
        for name, query in TABLES.items()
    }
    for number, count in enumerate(lines):
        with _refresher(catalog, spark_conf, directory / f"refresher-{number}.err") as output:
            for _ in range(count):
                _change(orders, category, rng)
                assert output.readline(), (directory / f"refresher-{number}.err").read_text()[-3000:]
            _change(orders, category, rng)
            # Somewhere within a refresh.
            threading.Event().wait(rng.uniform(0, SECONDS_MAX))
        for name, table in tables.items():
            if table.inspect.latest_snapshot_id() is not None:
                assert stored_bag(table) == expected_bag(catalog, table), (number, name)

    with _refresher(catalog, spark_conf, directory / "last.err") as output:
        while any(_lags(table) for table in tables.values()):
            assert output.readline(), (directory / "last.err").read_text()[-3000:]

    for name, table in tables.items():
        assert stored_bag(table) == expected_bag(catalog, table), name
        positions = lineage(table, table.inspect.latest_snapshot_id() or 0)
        assert positions[f"{orders.uuid}@main"] == orders.inspect.latest_snapshot_id(), name


def _change(orders: DynamicTable, category: DynamicTable, rng: random.Random) -> None:
    rows = {rng.randrange(40): {"cat": rng.randrange(6), "n": rng.randrange(9)} for _ in range(4)}
    orders.upsert([{"id": number, **row} for number, row in rows.items()])
    if rng.random() < 0.3:
        orders.delete(f"id = {rng.randrange(40)}")
    if rng.random() < 0.3:
        category.upsert([{"cat": rng.randrange(5), "name": f"name {rng.randrange(4)}"}])


def _lags(table: DynamicTable) -> bool:
    table = table.refresh()
    assert table.definition is not None
    stale = staleness(table, table.definition)
    return stale.is_new or stale.since_millis is not None


@contextmanager
def _refresher(catalog: Catalog, conf: dict[str, str], errors: Path) -> Iterator[IO[str]]:
    """Start a refresher; yield its output, a line per refresh; kill its processes at the end."""
    settings = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    with (
        errors.open("w") as log,
        subprocess.Popen(
            [
                *(sys.executable, "-m", "storage_lib.spark.refresher", "--warehouse", catalog.warehouse),
                *("--poll-seconds", "0.1", *settings),
            ],
            env=warm_environment(),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            yield process.stdout
        finally:
            os.killpg(process.pid, signal.SIGKILL)
