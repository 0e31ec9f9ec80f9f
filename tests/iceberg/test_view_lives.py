"""Random lives of tables with a view: after each commit, PyIceberg and DuckDB see exactly the table's rows."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from storage_lib import DynamicTable, open_catalog
from tests.iceberg.drawn_views import DrawnView, draw_view, move
from tests.support.deep_tests import thinned
from tests.support.iceberg_readers import READERS, canonical, counted, metadata_of, needs_readers, read_view

pytestmark = needs_readers
STEPS = 10


@pytest.mark.parametrize("seed", thinned(range(60), keep=2))
def test_readers_see_the_rows_of_each_snapshot(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)  # noqa: S311  chance, not cryptography
    drawn = draw_view(rng, open_catalog(str(tmp_path / "warehouse")))
    print(drawn.table.schema.fields, drawn.key, drawn.partition, drawn.options)
    seen = 0

    for _ in range(STEPS):
        done = move(drawn, rng)
        print(done)
        seen = check_new_snapshots(drawn, seen, tmp_path)
    check_kept_snapshots(drawn, tmp_path)


def check_new_snapshots(drawn: DrawnView, seen: int, scratch: Path) -> int:
    """Compare the snapshots after ``seen`` and the newest rows; return the id of the newest."""
    table = drawn.table.refresh()
    history = table.context.file_store.snapshots
    latest, earliest = history.latest_id() or 0, history.earliest_id() or 1
    newest = metadata_of(table, latest)
    for number in range(max(seen + 1, earliest), latest + 1):
        _check(table, newest, scratch, number)
    if latest:
        _check(table, newest, scratch, None)
        assert counted(newest) == table.count()
        assert table.inspect.health().view_lag == 0
    return latest


def check_kept_snapshots(drawn: DrawnView, scratch: Path) -> None:
    """Compare all snapshots that have not expired, and tagged ones, as the newest metadata shows them."""
    table = drawn.table.refresh()
    history = table.context.file_store.snapshots
    latest = history.latest_id()
    if latest is None:
        return
    tagged = {tag.snapshot.id for tag in table.tags.list()}
    for number in sorted({*range(history.earliest_id() or 1, latest + 1)} | tagged):
        _check(table, metadata_of(table, latest), scratch, number, tagged=number in tagged)


def _check(table: DynamicTable, metadata: str, scratch: Path, number: int | None, *, tagged: bool = False) -> None:
    if tagged:
        tag = next(tag.name for tag in table.tags.list() if tag.snapshot.id == number)
        expected = table.to_arrow(tag=tag)
    else:
        expected = table.to_arrow(snapshot_id=number)
    names = expected.column_names
    want = canonical(expected, names)
    for reader in READERS:
        got = canonical(read_view(reader, metadata, scratch, number), names)
        assert got == want, (reader, number, metadata)
