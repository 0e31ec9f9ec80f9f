"""How long the changelogs of expired snapshots are kept: by their number, their age, and who has yet to read them."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from storage_lib import MemoryCatalog
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.table.dynamic_table import DynamicTable
from tests.support.fake_environment import FakeClock, fake_environment

HOUR = 3600
RETAINED = {
    "log.system": "none",
    "changelog-producer": "input",
    "write-only": "true",
    "snapshot.num-retained.min": "1",
    "changelog.num-retained.min": "1",
    "changelog.num-retained.max": "20",
    "changelog.time-retained": "20 h",
}


def lived(options: dict[str, str], *, clock: FakeClock | None = None) -> DynamicTable:
    """Return a table with eight snapshots, one an hour, of which the last two are kept, and the changelogs of six."""
    clock = clock or FakeClock()
    catalog = MemoryCatalog(environment=fake_environment(clock=clock))
    table = catalog.create_table("db.t", "k INT, n INT", primary_key=["k"], options={**RETAINED, **options})
    for number in range(8):
        if number:
            clock.pass_time(HOUR)
        table.append(pa.table({"k": pa.array([number], pa.int32()), "n": pa.array([number], pa.int32())}))
    table.maintenance.expire_snapshots(retain_last=2)
    return table


def kept_changelogs(table: DynamicTable) -> list[int]:
    files = table.context.environment.file_io
    names = (each.name for each in files.list_directory(TablePaths(table.context.paths.root).changelog_directory))
    return sorted(int(name.removeprefix("changelog-")) for name in names if name.startswith("changelog-"))


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, [1, 2, 3, 4, 5, 6]),
        ({"changelog.num-retained.max": "4"}, [5, 6]),
        # Snapshots 4 to 8 are four hours old or younger.
        ({"changelog.time-retained": "4 h"}, [4, 5, 6]),
        ({"changelog.time-retained": "4 h", "changelog.num-retained.min": "6"}, [3, 4, 5, 6]),
        ({"changelog.time-retained": "4 h", "changelog.num-retained.max": "4"}, [5, 6]),
    ],
)
def test_changelogs_are_retained_by_number_and_age(options: dict[str, str], kept: list[int]) -> None:
    assert kept_changelogs(lived(options)) == kept


def test_a_changelog_that_a_consumer_has_yet_to_read_is_kept() -> None:
    clock = FakeClock()
    table = lived({"changelog.time-retained": "8 h"}, clock=clock)
    consumer = f"{table.context.paths.consumer_directory}/consumer-etl"
    table.context.environment.file_io.write_bytes(consumer, json.dumps({"nextSnapshot": 3}).encode())

    clock.pass_time(10 * HOUR)
    table.maintenance.expire_snapshots(retain_last=1)

    assert kept_changelogs(table) == [3, 4, 5, 6]


def test_rows_that_the_table_still_has_do_not_expire_with_the_changelog_that_added_them() -> None:
    clock = FakeClock()
    table = lived({"changelog-producer": "none", "changelog.time-retained": "8 h"}, clock=clock)
    assert kept_changelogs(table) == [1, 2, 3, 4, 5, 6]

    clock.pass_time(10 * HOUR)
    table.maintenance.expire_snapshots(retain_last=1)

    assert kept_changelogs(table) == []
    assert sorted(table.to_arrow().column("k").to_pylist()) == list(range(8))
