"""Changes of a source as weighted rows: the same in this process, in Spark's tasks, and by comparison."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from storage_lib.materialized.sources import source_delta
from storage_lib.spark.engine.source_frames import delta_frame
from tests.support.deep_tests import crossed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.catalog.catalog import Catalog
    from storage_lib.table.dynamic_table import DynamicTable

COLUMNS = {"id": "BIGINT NOT NULL", "p": "STRING NOT NULL", "n": "DOUBLE", "v": "STRING"}
KINDS: dict[str, dict[str, Any]] = {
    "key": {"primary_key": ["id"]},
    "key in several buckets": {"primary_key": ["id", "p"], "partition_by": ["p"], "options": {"bucket": "3"}},
    "key across partitions": {"primary_key": ["id"], "partition_by": ["p"], "options": {"bucket": "-1"}},
    "deletion vectors": {"primary_key": ["id"], "options": {"deletion-vectors.enabled": "true"}},
    "sequence": {"primary_key": ["id"], "options": {"sequence.field": "n"}},
    "aggregation": {
        "primary_key": ["id"],
        "options": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    },
    "counts": {},
    "append-only": {"options": {"write-mode": "append-only"}},
}


def filled(table: DynamicTable) -> DynamicTable:
    """Commit four snapshots: inserts, updates and more inserts, deletions where the table takes them, a compaction."""
    table.append([{"id": number, "p": "ab"[number % 2], "n": 1.0, "v": "x"} for number in range(6)])
    table.append([{"id": number, "p": "ab"[number // 6 % 2], "n": 2.0, "v": None} for number in (1, 2, 7)])
    if table.schema.primary_keys and table.options.merge_engine == "deduplicate":
        table.delete("id = 3")
    else:
        table.append([{"id": 8, "p": "b", "n": float("nan"), "v": "y"}])
    table.compact()
    return table


def weighted(table: DynamicTable, columns: list[str], before: int, after: int) -> Counter[tuple[object, ...]]:
    """Return the difference of two reads as rows with weights."""
    found: Counter[tuple[object, ...]] = Counter()
    for snapshot_id, sign in ((before, -1), (after, 1)):
        if snapshot_id:
            for row in table.to_arrow(columns=columns, snapshot_id=snapshot_id).to_pylist():
                found[tuple(map(repr, row.values()))] += sign
    return Counter({row: weight for row, weight in found.items() if weight})


@pytest.mark.parametrize(("kind", "rows_here_max"), crossed(KINDS, [200_000, 0]))
def test_a_delta_is_the_difference_of_two_snapshots(
    spark: SparkSession, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, kind: str, rows_here_max: int
) -> None:
    monkeypatch.setattr(source_delta, "_ROWS_HERE_MAX", rows_here_max)
    table = filled(catalog.create_table("db.t", COLUMNS, **KINDS[kind]))
    newest = table.inspect.latest_snapshot_id()
    assert newest is not None

    for before, after, columns in ((1, newest, ["id", "p", "n", "v"]), (2, newest, ["v"]), (0, 2, ["id", "v"])):
        delta = source_delta.source_delta(table, columns, before, after)
        found: Counter[tuple[object, ...]] = Counter()
        for row in delta_frame(spark, delta).collect():
            found[tuple(map(repr, row[:-1]))] += row[-1]
        assert Counter({row: weight for row, weight in found.items() if weight}) == weighted(
            table, columns, before, after
        ), (kind, before, after, columns)
        assert delta_frame(spark, delta).columns == [*columns, "_weight"]


def test_changes_of_columns_that_are_not_read_are_no_changes(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("db.t", COLUMNS, primary_key=["id"])
    table.append([{"id": 1, "p": "a", "n": 1.0, "v": "x"}])
    table.append([{"id": 1, "p": "a", "n": 2.0, "v": "x"}])

    assert source_delta.source_delta(table, ["id", "v"], 1, 2).row_count == 0
    assert source_delta.source_delta(table, ["n"], 1, 2).row_count == 2
