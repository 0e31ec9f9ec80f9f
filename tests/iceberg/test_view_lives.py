"""Random lives of tables with a view: after each commit, PyIceberg, DuckDB and Polars see exactly the table's rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage_lib import DynamicTable, open_catalog
from tests.iceberg.drawn_views import COMBINING, DrawnView, draw_view, move, rows_at
from tests.support.deep_tests import thinned
from tests.support.extras import needs
from tests.support.iceberg_readers import READERS, canonical, counted, metadata_of, needs_readers, read_view, view_of

pytestmark = [needs("pyiceberg"), needs_readers]
STEPS = 10
RESERVED_IDS = {2_147_483_646, 2_147_483_645}
"""Those of a row's sequence number and kind, in the range that Iceberg reserves."""


@pytest.mark.parametrize("seed", thinned(range(60), keep=2))
def test_readers_see_the_rows_of_each_snapshot(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)  # noqa: S311  chance, not cryptography
    check_life(draw_view(rng, open_catalog(str(tmp_path / "warehouse"))), rng, tmp_path)


@pytest.mark.parametrize("seed", thinned(range(40), keep=1))
def test_readers_see_snapshots_whose_rows_are_combined(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)  # noqa: S311  chance, not cryptography
    check_life(draw_view(rng, open_catalog(str(tmp_path / "warehouse")), kinds=COMBINING), rng, tmp_path)


def check_life(drawn: DrawnView, rng: Random, scratch: Path) -> None:
    """Change the table at random, and compare what each reader sees."""
    print(drawn.table.schema.fields, drawn.key, drawn.partition, drawn.options)
    seen = 0

    for _ in range(STEPS):
        done = move(drawn, rng)
        print(done)
        seen = check_new_snapshots(drawn, seen, scratch)
    if drawn.combines:
        drawn.table.refresh().compact(full=True)
        assert check_new_snapshots(drawn, seen, scratch) == (drawn.table.inspect.latest_snapshot_id() or 0)
    check_kept_snapshots(drawn, scratch)


def check_new_snapshots(drawn: DrawnView, seen: int, scratch: Path) -> int:
    """Compare the snapshots after ``seen`` that the view shows; return the newest of them."""
    table = drawn.table.refresh()
    latest = table.inspect.latest_snapshot_id() or 0
    shown = view_of(table).shown()
    if not latest or not shown:
        assert not latest or not drawn.shows_each
        return seen
    assert shown == latest or not drawn.shows_each
    newest = metadata_of(table, shown)
    ids = [each.id for each in view_of(table).directory.newest().snapshots]  # type: ignore[union-attr]
    if not drawn.combines:
        earliest = table.context.file_store.snapshots.earliest_id() or 1
        assert {*range(max(seen + 1, earliest), latest + 1)} <= {*ids}
    _check_column_ids(table, newest)
    for number in ids:
        if number > seen:
            _check(table, newest, scratch, number)
    _check(table, newest, scratch, None)
    assert counted(newest) == rows_at(table, shown).num_rows
    health = table.inspect.health()
    assert health.view_lag == 0
    assert health.view_waiting_count == latest - shown
    return shown


def _check_column_ids(table: DynamicTable, metadata: str) -> None:
    """Compare the highest id of a column, which ClickHouse does, with those in the files."""
    last = json.loads(Path(metadata).read_text())["last-column-id"]
    for path in table.inspect.files()["file_path"].to_pylist():
        ids = set(_ids(pq.read_schema(path)))
        assert max(ids - RESERVED_IDS) <= last, path


def _ids(fields: Iterable[pa.Field]) -> Iterator[int]:
    for each in fields:
        yield int((each.metadata or {}).get(b"PARQUET:field_id", 0))
        if pa.types.is_nested(each.type):
            yield from _ids(each.type.field(place) for place in range(each.type.num_fields))


def check_kept_snapshots(drawn: DrawnView, scratch: Path) -> None:
    """Compare all snapshots that the newest metadata shows: those that have not expired, and tagged ones."""
    table = drawn.table.refresh()
    newest = view_of(table).directory.newest()
    if newest is None:
        assert table.inspect.latest_snapshot_id() is None
        return
    ids = {each.id for each in newest.snapshots}
    if not drawn.combines and ids:
        history = table.context.file_store.snapshots
        kept = range(history.earliest_id() or 1, (history.latest_id() or 0) + 1)
        tagged = {tag.snapshot.id for tag in table.tags.list()}
        assert ids == {number for number in {*kept} | tagged if number >= drawn.begins}
    for number in sorted(ids):
        _check(table, metadata_of(table, newest.snapshot_id), scratch, number)


def _check(table: DynamicTable, metadata: str, scratch: Path, number: int | None) -> None:
    newest = view_of(table).directory.newest()
    assert newest is not None
    if number is None and newest.snapshot_id == table.inspect.latest_snapshot_id():
        expected = table.to_arrow()
    else:
        expected = rows_at(table, newest.snapshot_id if number is None else number)
        if number is None and newest.current is not None and newest.current.schema_id != newest.schema_id:
            return  # readers see older rows under the newest schema
    names = expected.column_names
    want = canonical(expected, names)
    for reader in READERS:
        got = canonical(read_view(reader, metadata, scratch, number), names)
        assert got == want, (reader, number, metadata)
