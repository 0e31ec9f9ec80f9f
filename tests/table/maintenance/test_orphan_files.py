"""Orphan files are found and removed; files that may still be needed never are."""

from __future__ import annotations

from datetime import timedelta

import pytest

from storage_lib import DynamicTable, InvalidInputError
from tests.support.every_file import data_files, every_file, needed_by_snapshots
from tests.support.fake_environment import FakeClock
from tests.support.faulty_file_io import Fault, FaultKind, FaultyFileIO, SimulatedCrash
from tests.support.mortal_process import reopened_in
from tests.support.orders_table import content, orders, reopened, rows

DAY = 24 * 3600


def pass_time(table: DynamicTable, seconds: float) -> None:
    clock = table.environment.clock
    assert isinstance(clock, FakeClock)
    clock.pass_time(seconds)


@pytest.fixture
def lived() -> DynamicTable:
    """Create a table with a tag, a branch, an expiry, and files of a writer that crashed."""
    table = orders(None, **{"log.system": "none"})
    for price in (1, 2, 3):
        table.append(rows(f"+U a 1 {price}", "+I b 2 5"))
    table.tags.create("second", 2)
    table.branches.create("dev", snapshot_id=1)
    table.branches.open("dev").append(rows("+U a 1 77"))
    table.compact()
    table.maintenance.expire_snapshots(retain_last=2)
    return table


def leave_orphans(table: DynamicTable) -> set[str]:
    """Leave an uncommitted write, a manifest of a lost commit, and temporary files."""
    before = data_files(table)
    task = table.new_write().open_task(table.new_write().begin(commit_user="dead"))
    task.write(rows("+I z 9 9"))
    task.prepare_commit()
    files, root = table.environment.file_io, table.location
    left = {
        f"{root}/manifest/manifest-lost-0",
        f"{root}/manifest/manifest-list-lost-0",
        f"{root}/manifest/.manifest-x.123.tmp",
        f"{root}/snapshot/.snapshot-9.123.tmp",
        f"{root}/branch/branch-dev/snapshot/.snapshot-9.123.tmp",
        f"{root}/lease/waiting-crashed",
        f"{root}/index/index-lost-0",
        f"{root}/statistics/stat-lost-0",
        f"{root}/branch/branch-half/snapshot/snapshot-1",
    }
    for path in left:
        files.write_bytes(path, b"x")
    return left | (data_files(table) - before)


def test_exactly_the_orphans_go_and_only_when_they_are_old_enough(lived: DynamicTable) -> None:
    sound = every_file(lived.environment.file_io, lived.location)
    orphans = leave_orphans(lived)
    others = {path for path in every_file(lived.environment.file_io, lived.location) - sound if "lease/" in path}

    assert lived.maintenance.remove_orphan_files().paths == ()
    pass_time(lived, DAY + 1)
    found = lived.maintenance.remove_orphan_files(dry_run=True)
    assert set(found.paths) == orphans
    assert found.size_bytes > 0
    assert every_file(lived.environment.file_io, lived.location) >= orphans

    assert lived.maintenance.remove_orphan_files() == found
    assert every_file(lived.environment.file_io, lived.location) == sound | (others - orphans)
    assert lived.maintenance.remove_orphan_files().paths == ()


def test_what_tags_branches_and_snapshots_need_stays(lived: DynamicTable) -> None:
    leave_orphans(lived)
    lived.maintenance.remove_orphan_files(older_than=timedelta(0))
    fresh = reopened(lived)
    assert content(fresh) == {"a 1 3", "b 2 5"}
    assert fresh.to_arrow(tag="second").num_rows == 2
    assert content(fresh.branches.open("dev")) == {"a 1 77", "b 2 5"}
    assert data_files(lived) == needed_by_snapshots(
        fresh.context.file_store, fresh.branches.open("dev").context.file_store
    )


def test_a_file_that_is_no_tables_is_left_alone(lived: DynamicTable) -> None:
    strangers = {
        f"{lived.location}/{name}" for name in ("README.md", "notes/bucket-0/x", "manifest/notes.txt", "dropped")
    }
    for path in strangers:
        lived.environment.file_io.write_bytes(path, b"x")
    lived.maintenance.remove_orphan_files(older_than=timedelta(0))
    assert every_file(lived.environment.file_io, lived.location) >= strangers


def test_a_commit_between_listing_and_reading_is_seen(lived: DynamicTable, monkeypatch: pytest.MonkeyPatch) -> None:
    order = lived.new_write().begin(commit_user="slow")
    task = lived.new_write().open_task(order)
    task.write(rows("+I c 3 30"))
    message = task.prepare_commit()
    pass_time(lived, 2 * DAY)
    orphans = reopened(lived).context.file_store.orphans
    needed = orphans._needed

    def needed_after_the_commit() -> set[str]:
        lived.new_write().commit(order, [message], 1)
        return needed()

    monkeypatch.setattr(orphans, "_needed", needed_after_the_commit)
    orphans.remove(modified_until_ms=lived.environment.clock.now_millis(), dry_run=False)

    assert content(reopened(lived)) == {"a 1 3", "b 2 5", "c 3 30"}


def test_what_an_interrupted_expiry_left_is_not_guessed_at(lived: DynamicTable) -> None:
    """The next expiry finishes it; until then the files of its snapshots are not orphans."""
    lived.append(rows("+U a 1 4"))
    lived.compact()
    storage = FaultyFileIO(lived.environment.file_io, Fault(FaultKind.CRASH_BEFORE, operation="delete"))
    with pytest.raises(SimulatedCrash):
        reopened_in(storage, lived, names="mortal").maintenance.expire_snapshots(retain_last=1)
    before = data_files(lived)

    reopened(lived).maintenance.remove_orphan_files(older_than=timedelta(0))
    assert data_files(lived) == before
    reopened(lived).maintenance.expire_snapshots(retain_last=1)
    fresh = reopened(lived)
    assert data_files(lived) == needed_by_snapshots(
        fresh.context.file_store, fresh.branches.open("dev").context.file_store
    )


def test_a_negative_age_is_refused(lived: DynamicTable) -> None:
    with pytest.raises(InvalidInputError, match="0 or more"):
        lived.maintenance.remove_orphan_files(older_than=timedelta(days=-1))
