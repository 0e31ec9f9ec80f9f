"""Spark's own reader of Iceberg sees exactly the table's rows after each commit of random lives."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from storage_lib import DynamicTable, open_catalog
from tests.iceberg.drawn_views import COMBINING, KINDS, draw_view, move, rows_at
from tests.support.iceberg_readers import canonical, view_of
from tests.support.iceberg_spark import counted_by_spark, needs_spark_of_iceberg, read_by_spark

pytestmark = [pytest.mark.deep, needs_spark_of_iceberg, pytest.mark.timeout(900)]
STEPS = 10


@pytest.mark.parametrize("kinds", [KINDS, COMBINING], ids=["any", "combined"])
@pytest.mark.parametrize("seed", range(5))
def test_spark_sees_the_rows_of_each_snapshot(tmp_path: Path, seed: int, kinds: tuple[str, ...]) -> None:
    rng = Random(1000 + seed)  # noqa: S311  chance, not cryptography
    drawn = draw_view(rng, open_catalog(str(tmp_path / "warehouse")), kinds=kinds)
    print(drawn.table.schema.fields, drawn.key, drawn.partition, drawn.options)

    for _ in range(STEPS):
        print(move(drawn, rng))
        check_newest(drawn.table.refresh(), tmp_path)
    if drawn.combines:
        drawn.table.refresh().compact(full=True)
        check_newest(drawn.table.refresh(), tmp_path)
    check_kept(drawn.table.refresh(), tmp_path)


def check_newest(table: DynamicTable, scratch: Path) -> None:
    """Compare the snapshot that the view shows, read without an id, and a count that reads no column."""
    newest = view_of(table).directory.newest()
    if newest is None or newest.current is None:
        return
    expected = rows_at(table, newest.snapshot_id)
    assert counted_by_spark(table) == expected.num_rows
    if newest.current.schema_id == newest.schema_id:
        got = read_by_spark(table, scratch)
        assert canonical(got, expected.column_names) == canonical(expected, expected.column_names)
        low = Random(newest.snapshot_id).randrange(100)  # noqa: S311
        above = sum(1 for each in expected.column("n").to_pylist() if each is not None and each > low)
        assert counted_by_spark(table, f"n > {low}") == above


def check_kept(table: DynamicTable, scratch: Path) -> None:
    """Compare each snapshot that the view still has, by time travel."""
    newest = view_of(table).directory.newest()
    for each in () if newest is None else newest.snapshots:
        expected = rows_at(table, each.id)
        got = read_by_spark(table, scratch, each.id)
        assert canonical(got, expected.column_names) == canonical(expected, expected.column_names), each.id
