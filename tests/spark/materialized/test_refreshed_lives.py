"""After any history of its sources, a refresh makes a table equal to its query's answer at the recorded snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib.spark import create_materialized_table, refresh
from storage_lib.spark.engine import computed_once
from tests.support.changing_sources import QUERIES, ChangingSources
from tests.support.deep_tests import thinned
from tests.support.materialized_answers import expected_bag, stored_bag

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.catalog.catalog import Catalog


@pytest.mark.parametrize(
    ("seed", "rows_min", "rows_here"),
    thinned([pytest.param(2, "60", 3), pytest.param(1, "0", 20_000), pytest.param(3, "60", 20_000)]),
)
def test_every_refresh_of_a_random_life_is_exact(
    spark: SparkSession,
    catalog: Catalog,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    rows_min: str,
    rows_here: int,
) -> None:
    monkeypatch.setattr(computed_once, "ROWS_HERE_MAX", rows_here)
    sources = ChangingSources(catalog, seed)
    options = {"write-only": "true", "accumulators.rows-min": rows_min}
    tables = {
        name: create_materialized_table(catalog, f"shop.{name}", query, spark=spark, options=options)
        for name, query in QUERIES.items()
    }
    modes = set()
    history: list[str] = []
    for _ in range(5):
        history += [sources.step() for _ in range(sources.random.randrange(1, 5))]
        for name, table in tables.items():
            if name not in ("counted", "chained") and sources.random.random() < 0.3:
                continue  # this table's next refresh has more to do
            result = refresh(spark, table)
            modes.add(str(result.mode))
            assert stored_bag(table) == expected_bag(catalog, table), (seed, history, name, result)

    assert {"full", "incremental"} <= modes
