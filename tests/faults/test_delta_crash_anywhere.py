"""Crash at the k-th change of the files of a table with a log for readers of Delta, for every k.

The log then shows a snapshot that the table has, with its rows, and the next commit brings it up to the newest one.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from storage_lib import DynamicTable
from storage_lib.io.file_io import FileIO
from tests.faults.test_view_crash_anywhere import ACTS, OPTIONS, VIEW, crashes_of
from tests.support.crash_points import named
from tests.support.deep_tests import thinned
from tests.support.extras import needs
from tests.support.orders_table import orders, rows
from tests.support.view_reader import table_rows

pytestmark = needs("deltalake")


def logged(count: int) -> DynamicTable:
    """Return a table in memory with so many snapshots, the last of which has hidden rows."""
    table = orders(None, **OPTIONS, **VIEW, **{"metadata.delta.enabled": "true"})
    for number in range(count):
        table.append(rows(f"+U a 1 {number}", f"+I a {10 + number} 1", "+I b 3 30"))
    return table


def check_log(table: DynamicTable, directory: Path) -> int:
    """Compare what delta-rs reads with the snapshot that the log shows; return that."""
    from deltalake import DeltaTable

    assert table.context.iceberg_view is not None
    shown = table.context.iceberg_view.delta.shown_snapshot()
    assert shown is not None
    copy_tree(table.environment.file_io, table.location, directory)
    earliest = table.context.file_store.snapshots.earliest_id() or 1
    if shown >= earliest:
        found = pa.table(DeltaTable(str(directory)).scan())
        assert table_rows(found) == table_rows(table.to_arrow(snapshot_id=shown)), shown
    return shown


def copy_tree(files: FileIO, path: str, directory: Path) -> None:
    """Write a table's files where delta-rs can read them: the log names them relative to itself."""
    directory.mkdir()
    for entry in files.list_directory(path):
        if entry.is_directory:
            copy_tree(files, f"{path}/{entry.name}", directory / entry.name)
        else:
            (directory / entry.name).write_bytes(files.read_bytes(f"{path}/{entry.name}"))


@pytest.mark.parametrize("name", thinned(ACTS, keep=lambda name: name in ("upsert and delete", "expire")))
@pytest.mark.parametrize("count", thinned([3, 10], keep=1))  # the eleventh version has a checkpoint
def test_after_a_crash_the_log_shows_a_snapshot_and_the_next_commit_brings_it_up(
    name: str, count: int, tmp_path: Path
) -> None:
    for place, (crash, left) in enumerate(crashes_of(ACTS[name], logged(count))):
        with named(crash):
            assert check_log(left, tmp_path / f"crashed-{place}") <= (left.inspect.latest_snapshot_id() or 0)
            left.append(rows("+I b 9 90"))
            assert check_log(left, tmp_path / f"next-{place}") == left.inspect.latest_snapshot_id()
