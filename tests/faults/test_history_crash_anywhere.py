"""Tags, branches, rollbacks and clean-ups that crash before the k-th write, for each k, lose no live file.

Another process then repeats the action, and in the end exactly the needed files remain.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

import pytest

from storage_lib import AlreadyExistsError, DynamicTable, NotFoundError
from tests.support.crash_points import CrashPoints, copy_of_table
from tests.support.every_file import data_files, needed_by_snapshots
from tests.support.faulty_file_io import WRITES
from tests.support.mortal_process import reopened_in
from tests.support.orders_table import content, orders, reopened, rows

NEWEST = {"a 1 12", "b 2 20"}
TAGGED = {"a 1 10", "b 2 20"}
BRANCHED = {"a 1 11", "b 2 20", "c 3 30"}


@dataclass(frozen=True)
class Act:
    """Action of the crashing process, and the content of the table when it is complete."""

    run: Callable[[DynamicTable], object]
    content: frozenset[str] = frozenset(NEWEST)


def _identity() -> dict[str, object]:
    return {"commit_user": "mortal", "commit_identifier": 1}


ACTS = {
    "create a tag": Act(lambda table: table.tags.create("new")),
    "delete a tag": Act(lambda table: table.tags.delete("first")),
    "create a branch": Act(lambda table: table.branches.create("new", tag="first")),
    "delete a branch": Act(lambda table: table.branches.delete("dev")),
    "roll back": Act(
        lambda table: table.rollback_to(tag="first", **_identity()),  # type: ignore[arg-type]
        frozenset(TAGGED),
    ),
    "roll back, tracked": Act(
        lambda table: table.rollback_to(tag="first", change_tracking=True, **_identity()),  # type: ignore[arg-type]
        frozenset(TAGGED),
    ),
    "fast-forward": Act(
        lambda table: table.branches.fast_forward("latest", **_identity()),  # type: ignore[arg-type]
        frozenset({*NEWEST, "d 4 40"}),
    ),
    "remove orphans": Act(lambda table: table.maintenance.remove_orphan_files(older_than=timedelta(0))),
    "expire": Act(lambda table: table.maintenance.expire_snapshots(retain_last=1)),
    "analyze": Act(lambda table: table.maintenance.analyze(**_identity())),  # type: ignore[arg-type]
}


PLACES = {"in the table": {}, "apart from it": {"file.root-path": "/outside"}}


def _table(place: str) -> DynamicTable:
    """Return a table with a tag of an expired snapshot, a branch of another, one of the newest, and an orphan file."""
    table = orders(None, **{"log.system": "none", "lease.timeout": "5 s", "write-only": "true", **PLACES[place]})
    table.append(rows("+I a 1 10", "+I b 2 20"))
    table.tags.create("first")
    table.append(rows("+U a 1 11"))
    table.branches.create("dev")
    table.branches.open("dev").append(rows("+I c 3 30"))
    table.append(rows("+U a 1 12"))
    table.compact()
    table.maintenance.expire_snapshots(retain_last=2)
    table.branches.create("latest")
    table.branches.open("latest").append(rows("+I d 4 40"))
    write_context = table.new_write().begin(commit_user="dead")
    task = table.new_write().open_task(write_context)
    task.write(rows("+I z 9 90"))
    task.prepare_commit()
    table.context.leases.release(write_context.lease)  # type: ignore[arg-type]
    return table


def _assert_whole(table: DynamicTable, allowed: set[frozenset[str]], when: str) -> None:
    fresh = reopened(table)
    assert content(fresh) in allowed, when
    for snapshot_id in fresh.inspect.snapshots()["snapshot_id"].to_pylist():
        assert fresh.to_arrow(snapshot_id=snapshot_id).num_rows >= 2, when
    for tag in fresh.tags.list():
        assert fresh.to_arrow(tag=tag.name).num_rows >= 2, when
        if tag.name == "first":
            assert {" ".join(map(str, row.values())) for row in fresh.to_arrow(tag="first").to_pylist()} == TAGGED, when
    for name in fresh.branches.list():
        shown = content(fresh.branches.open(name))
        assert shown == {"dev": BRANCHED, "latest": {*NEWEST, "d 4 40"}, "new": TAGGED}[name], when


def _crashes(act: Act, table: DynamicTable) -> list[tuple[str, DynamicTable]]:
    """Return what a crash before each write leaves; a crash before a read is equivalent to one before the next write.

    The action runs once: a crash leaves the files as they were at that moment.
    """
    crashes: list[tuple[str, DynamicTable]] = []

    def crash(at: int) -> None:
        if storage.calls[-1][0] in WRITES:
            crashes.append((f"before I/O {at}, {storage.calls[-1]}", copy_of_table(table)))

    storage = CrashPoints(table.environment.file_io, state=lambda: len(storage.calls), changed=crash)
    act.run(reopened_in(storage, table, names="mortal"))
    return crashes


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ACTS)
def test_whatever_dies_what_is_live_stays_and_the_next_process_finishes(name: str, place: str) -> None:
    act = ACTS[name]
    crashes = _crashes(act, _table(place))
    assert crashes
    for when, table in crashes:
        _assert_whole(table, {frozenset(NEWEST), act.content}, when)

        with suppress(AlreadyExistsError, NotFoundError):
            act.run(reopened(table))
        _assert_whole(table, {act.content}, when)

        for tag in table.tags.list():
            if tag.name.startswith("restoring-"):
                table.tags.delete(tag.name)
        reopened(table).maintenance.remove_orphan_files(older_than=timedelta(0))
        fresh = reopened(table)
        _assert_whole(table, {act.content}, when)
        stores = [
            fresh.context.file_store,
            *(fresh.branches.open(branch).context.file_store for branch in fresh.branches.list()),
        ]
        if name != "expire":
            assert data_files(table) == needed_by_snapshots(*stores), when
