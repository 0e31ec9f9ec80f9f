"""ORDER BY with LIMIT on Spark: the stored rows and the changes decide, and the source is read if rows are missing."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib.materialized.plan.refresh_result import RefreshWork
from storage_lib.spark import create_materialized_table, refresh
from tests.support.materialized_answers import expected_bag, stored_bag

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.catalog.catalog import Catalog

SCORES = {"id": "BIGINT NOT NULL", "team": "STRING", "points": "BIGINT"}
QUERIES = [
    "SELECT id, points FROM scores ORDER BY points DESC, id LIMIT 4",
    "SELECT team, sum(points) AS total FROM scores GROUP BY team ORDER BY total DESC, team LIMIT 3",
    "SELECT points FROM scores ORDER BY points LIMIT 5",
    "SELECT s.id, b.points FROM scores s JOIN (SELECT id, points FROM scores ORDER BY points, id LIMIT 2) b USING (id)",
]


@pytest.mark.parametrize("query", QUERIES)
def test_first_rows_are_those_of_the_query_after_every_refresh(
    spark: SparkSession, catalog: Catalog, query: str
) -> None:
    rng = Random(query)  # noqa: S311  chance, not secrets
    scores = catalog.create_table("shop.scores", SCORES, primary_key=["id"])
    best = create_materialized_table(catalog, "shop.best", query, spark=spark)
    modes = []
    for step in range(9):
        written = range(12) if step == 0 else rng.sample(range(14), rng.choice([1, 3]))
        scores.upsert([{"id": i, "team": rng.choice(["a", "b", "c", "d", None]), "points": rng.randrange(30)}
                       for i in written])  # fmt: skip
        if step:
            # The first rows are deleted most often, so that others follow them.
            held = [row["id"] for row in scores.to_arrow().sort_by([("points", "descending")]).to_pylist()]
            scores.delete([{"id": held[rng.choice([0, 1, 5])]}])
        modes.append(refresh(spark, best).mode)
        assert stored_bag(best.refresh()) == expected_bag(catalog, best.refresh())

    assert modes == [RefreshWork.FULL, *[RefreshWork.INCREMENTAL] * 8]


def test_a_text_of_a_floating_point_number_is_computed_in_full(spark: SparkSession, catalog: Catalog) -> None:
    numbers = catalog.create_table("shop.numbers", {"id": "BIGINT NOT NULL", "x": "DOUBLE"}, primary_key=["id"])
    texts = create_materialized_table(catalog, "shop.texts", "SELECT CAST(x AS STRING) AS s FROM numbers", spark=spark)
    numbers.append([{"id": 1, "x": 0.0}, {"id": 2, "x": 1.5}])
    refresh(spark, texts)
    numbers.upsert([{"id": 1, "x": -0.0}])

    second = refresh(spark, texts)

    assert second.mode == RefreshWork.FULL
    assert "CAST(numbers.x AS STRING) tells 0.0 from -0.0" in str(second.reason)
    assert stored_bag(texts.refresh()) == {("-0.0",): 1, ("1.5",): 1}
