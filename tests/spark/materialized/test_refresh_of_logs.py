"""A materialized table with a log: streams receive the changes of its rows, and one refresh is one transaction."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib import open_catalog
from storage_lib.spark import create_materialized_table, refresh
from tests.support.materialized_answers import expected_bag, stored_bag
from tests.support.shared_server import unique_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUMS = "SELECT coalesce(cat, '') AS cat, sum(amount) AS total FROM orders GROUP BY coalesce(cat, '')"


@pytest.mark.parametrize("key", [["cat"], []])
def test_a_stream_of_a_materialized_table_sees_the_rows_that_differ(
    spark: SparkSession, bootstrap_servers: str, tmp_path: Path, key: list[str]
) -> None:
    catalog = open_catalog(str(tmp_path / "warehouse"), {"log.kafka.bootstrap.servers": bootstrap_servers})
    columns = {"id": "INT NOT NULL", "cat": "STRING", "amount": "BIGINT"}
    orders = catalog.create_table("shop.orders", columns, primary_key=["id"], options={"log.system": "none"})
    orders.append([{"id": number, "cat": "abc"[number % 3], "amount": number} for number in range(6)])
    query = SUMS if key else "SELECT cat FROM orders"
    table = create_materialized_table(
        catalog,
        "shop.sums",
        query,
        spark=spark,
        primary_key=key,
        options={"log.kafka.topic": f"{unique_name(tmp_path)}-sums", "log.changelog-mode": "all"},
    )
    refresh(spark, table)
    stream = table.stream(startup="latest")
    stream.poll()

    orders.upsert([{"id": 0, "cat": "b", "amount": 5}])
    result = refresh(spark, table)
    batch = stream.poll()

    assert result.mode == "incremental"
    assert stored_bag(table) == expected_bag(catalog, table)
    assert batch is not None
    assert sorted(tuple(row.values()) for row in batch.to_pylist()) == (
        [("b", 5, "-U"), ("b", 10, "+U")] if key else [("a", "-D"), ("b", "+I")]
    )
