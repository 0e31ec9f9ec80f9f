"""Materialized tables over tables of Delta Lake and Iceberg are equal to their queries after each refresh."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

from storage_lib.materialized.plan.refresh_result import RefreshWork
from storage_lib.spark import create_materialized_table, refresh
from tests.spark.materialized.conftest import only_spark
from tests.support.lake_lives import DELTA_FEATURES, DeltaLife, IcebergLife, LakeLife
from tests.support.materialized_answers import stored_bag

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.catalog.catalog import Catalog
    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:Delete operation did not match any records"),
]

QUERIES = {
    "kept": "SELECT id, amount, price FROM lake.shop.orders WHERE amount > 2",
    "grouped": "SELECT cat, count(*) AS n, sum(amount) AS total, min(price) AS least, max(amount) AS most"
    " FROM lake.shop.orders GROUP BY cat",
    "joined": "SELECT o.id, c.name, o.amount FROM lake.shop.orders o JOIN names c ON o.cat = c.cat",
    "outer_joined": "SELECT c.name, o.id FROM names c LEFT JOIN lake.shop.orders o ON o.cat = c.cat AND o.amount > 0",
    "distinct": "SELECT DISTINCT cat, amount FROM lake.shop.orders",
    "united": "SELECT cat FROM lake.shop.orders UNION ALL SELECT cat FROM names",
    "placed": "SELECT id, row_number() OVER (PARTITION BY cat ORDER BY id, amount, price) AS place"
    " FROM lake.shop.orders",
    "paired": "SELECT a.id, b.id AS other FROM lake.shop.orders a JOIN lake.shop.orders b"
    " ON a.cat = b.cat AND a.id < b.id",
}
REASONS = ("first refresh", "has expired", "recreated", "replaced", "was altered", "takes about")


def expected(life: LakeLife, names: DynamicTable, query: str) -> Counter[tuple[object, ...]]:
    """Compute the query by DuckDB over what the format's own library reads."""
    with duckdb.connect() as connection:
        connection.register("lake_orders", life.rows())
        connection.register("names", names.to_arrow())
        rows = connection.sql(query.replace("lake.shop.orders", "lake_orders")).to_arrow_table().to_pylist()
    return Counter(tuple(row.values()) for row in rows)


def live(
    spark: SparkSession, catalog: Catalog, life: LakeLife, chance: random.Random, queries: list[str], rounds: int
) -> Counter[str]:
    """Change the sources and refresh in turn; compare each answer. Returns how often each kind of refresh occurred."""
    names = catalog.create_table("shop.names", {"cat": "STRING NOT NULL", "name": "STRING"}, primary_key=["cat"])
    names.append([{"cat": "a", "name": "first"}, {"cat": "b", "name": "second"}])
    catalogs = {"lake": {"type": life.kind, "warehouse": str(life.warehouse)}}
    tables = {
        name: create_materialized_table(catalog, f"shop.{name}", QUERIES[name], spark=spark, catalogs=catalogs)
        for name in queries
    }
    modes: Counter[str] = Counter()
    for _ in range(rounds):
        for _ in range(chance.randint(1, 3)):
            life.step()
        if chance.random() < 0.4:
            names.upsert([{"cat": chance.choice("abc"), "name": chance.choice(("x", "y"))}])
        for name, table in tables.items():
            if chance.random() < 0.2:
                continue  # its next refresh has more to do
            result = refresh(spark, table)
            modes[str(result.mode)] += 1
            assert stored_bag(table) == expected(life, names, QUERIES[name]), (life.done, name, result)
            assert result.mode is not RefreshWork.FULL or any(each in result.reason for each in REASONS), result
            assert refresh(spark, table).mode is RefreshWork.NONE
    return modes


@pytest.mark.parametrize(
    ("seed", "features"),
    [
        (seed, features) if seed < 2 else pytest.param(seed, features, marks=pytest.mark.deep)
        for seed in range(16)
        for features in [DELTA_FEATURES[seed % 4]]
    ],
)
def test_answers_over_a_random_delta_table_are_exact(
    spark: SparkSession, catalog: Catalog, tmp_path: Path, seed: int, features: dict[str, str]
) -> None:
    chance = random.Random(seed)  # noqa: S311
    life = DeltaLife(tmp_path / "lake", chance, features)

    modes = live(spark, catalog, life, chance, chance.sample(sorted(QUERIES), 2), 6)

    assert modes["incremental"] > 0, (modes, life.done)


@pytest.mark.parametrize(
    ("seed", "version"),
    [(seed, "2") if seed == 0 else pytest.param(seed, str(seed % 2 + 1), marks=pytest.mark.deep) for seed in range(16)],
)
def test_answers_over_a_random_iceberg_table_are_exact(
    spark: SparkSession, catalog: Catalog, tmp_path: Path, seed: int, version: str
) -> None:
    chance = random.Random(seed)  # noqa: S311
    life = IcebergLife(tmp_path / "lake", chance, version)

    modes = live(spark, catalog, life, chance, chance.sample(sorted(QUERIES), 2), 6)

    assert modes["incremental"] > 0, (modes, life.done)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_answers_that_spark_computes_are_exact(
    spark: SparkSession, catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, seed: int
) -> None:
    from storage_lib.materialized.sources import lake_source

    only_spark(monkeypatch)
    monkeypatch.setattr(lake_source, "BYTES_HERE_MAX", 4_000)  # of some changes, tasks of Spark read the files
    chance = random.Random(seed)  # noqa: S311
    warehouse = tmp_path / "lake"
    life = DeltaLife(warehouse, chance, {}) if kind == "delta" else IcebergLife(warehouse, chance, "2")

    live(spark, catalog, life, chance, chance.sample(sorted(QUERIES), 2), 4)
