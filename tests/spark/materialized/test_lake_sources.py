"""Materialized tables over tables of Delta Lake and Iceberg are equal to their queries after each refresh."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

from deltalake import DeltaTable, write_deltalake

from storage_lib.duckdb import duckdb_engine
from storage_lib.materialized.plan.refresh_result import RefreshWork
from storage_lib.materialized.service.staleness import staleness
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
    "added": "SELECT cat, count(*) AS n, sum(amount) AS total, sum(price) AS paid FROM lake.shop.orders GROUP BY cat",
    "distinct": "SELECT DISTINCT cat, amount FROM lake.shop.orders",
    "united": "SELECT cat FROM lake.shop.orders UNION ALL SELECT cat FROM names",
    "placed": "SELECT id, row_number() OVER (PARTITION BY cat ORDER BY id, amount, price) AS place"
    " FROM lake.shop.orders",
    "paired": "SELECT a.id, b.id AS other FROM lake.shop.orders a JOIN lake.shop.orders b"
    " ON a.cat = b.cat AND a.id < b.id",
}
REASONS = ("first refresh", "has expired", "recreated", "replaced", "was altered", "takes about", "accumulators belong")
"""Why the whole answer may be computed. A column that is added gives accumulators another form, for any source."""


def expected(life: LakeLife, names: DynamicTable, query: str) -> Counter[tuple[object, ...]]:
    """Compute the query by DuckDB over what the format's own library reads."""
    with duckdb.connect() as connection:
        connection.register("lake_orders", life.rows())
        connection.register("names", names.to_arrow())
        rows = connection.sql(query.replace("lake.shop.orders", "lake_orders")).to_arrow_table().to_pylist()
    return Counter(tuple(row.values()) for row in rows)


def live(
    spark: SparkSession,
    catalog: Catalog,
    life: LakeLife,
    chance: random.Random,
    queries: list[str],
    rounds: int,
    options: dict[str, str] | None = None,
) -> Counter[str]:
    """Change the sources and refresh in turn; compare each answer. Returns how often each kind of refresh occurred."""
    names = catalog.create_table("shop.names", {"cat": "STRING NOT NULL", "name": "STRING"}, primary_key=["cat"])
    names.append([{"cat": "a", "name": "first"}, {"cat": "b", "name": "second"}])
    catalogs = {"lake": {"type": life.kind, "warehouse": str(life.warehouse)}}
    tables = {
        name: create_materialized_table(
            catalog, f"shop.{name}", QUERIES[name], spark=spark, catalogs=catalogs, options=options
        )
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


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """Return the directory of a table of Delta Lake with two rows."""
    path = tmp_path / "lake" / "shop" / "orders"
    write_deltalake(str(path), pa.table({"id": [1, 2], "amount": [10, 20]}))
    return path


def over(spark: SparkSession, catalog: Catalog, orders: Path, name: str, query: str) -> DynamicTable:
    """Create and refresh a materialized table over the lake."""
    catalogs = {"lake": {"type": "delta", "warehouse": str(orders.parents[1])}}
    table = create_materialized_table(catalog, f"shop.{name}", query, spark=spark, catalogs=catalogs)
    refresh(spark, table)
    return table


def test_tables_that_share_a_table_of_a_lake_show_one_version_of_it(
    spark: SparkSession, catalog: Catalog, orders: Path
) -> None:
    large = over(spark, catalog, orders, "large", "SELECT id, amount FROM lake.shop.orders WHERE amount > 10")
    both = over(
        spark, catalog, orders, "both", "SELECT o.id, l.amount FROM lake.shop.orders o LEFT JOIN large l ON o.id = l.id"
    )
    write_deltalake(str(orders), pa.table({"id": [3], "amount": [30]}), mode="append")

    waiting = refresh(spark, both)
    assert waiting.mode is RefreshWork.NONE
    assert waiting.reason == "newer snapshots of the sources do not agree yet; refresh shop.large first"
    refresh(spark, large)
    write_deltalake(str(orders), pa.table({"id": [4], "amount": [40]}), mode="append")
    done = refresh(spark, both)

    assert done.mode is RefreshWork.INCREMENTAL
    assert done.positions["lake.shop.orders"] == 2
    assert stored_bag(both) == Counter([(1, None), (2, 20), (3, 30)])


def test_a_refresh_that_ends_in_the_middle_is_repeated(
    spark: SparkSession, catalog: Catalog, orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sums = over(spark, catalog, orders, "sums", "SELECT count(*) AS n, sum(amount) AS total FROM lake.shop.orders")
    write_deltalake(str(orders), pa.table({"id": [3], "amount": [30]}), mode="append")
    calls: list[str] = []

    def ends(*_: object) -> None:
        calls.append("commit")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(duckdb_engine, "commit_difference", ends)
        with pytest.raises(KeyboardInterrupt):
            refresh(spark, sums)
    assert calls == ["commit"]
    assert stored_bag(sums) == Counter([(2, 30)])

    again = refresh(spark, sums)
    assert (again.mode, again.rows_read["lake.shop.orders"]) == (RefreshWork.INCREMENTAL, 1)
    assert stored_bag(sums) == Counter([(3, 60)])


def test_staleness_counts_from_the_first_commit_that_the_table_lacks(
    spark: SparkSession, catalog: Catalog, orders: Path
) -> None:
    copied = over(spark, catalog, orders, "copied", "SELECT id FROM lake.shop.orders")
    definition = copied.definition
    assert definition is not None
    assert staleness(copied, definition).since_millis is None
    for number in (3, 4):
        write_deltalake(str(orders), pa.table({"id": [number], "amount": [0]}), mode="append")

    first = DeltaTable(str(orders)).history()[1]["timestamp"]
    assert staleness(copied, definition).since_millis == first


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


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_sums_of_accumulators_are_exact(
    spark: SparkSession, catalog: Catalog, tmp_path: Path, kind: str, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311
    warehouse = tmp_path / "lake"
    life = DeltaLife(warehouse, chance, {}) if kind == "delta" else IcebergLife(warehouse, chance, "2")

    modes = live(spark, catalog, life, chance, ["added", "distinct"], 6, {"accumulators.rows-min": "0"})

    assert modes["incremental"] > 0
