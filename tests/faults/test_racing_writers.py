"""Concurrent writers need no lock, lose nothing, and no commit takes effect twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from storage_lib.errors import CommitConflictError
from storage_lib.io.environment import Environment, system_environment
from storage_lib.io.local.memory_file_io import MemoryFileIO
from tests.support import committing_process
from tests.support.every_file import every_file, needed_by_snapshots
from tests.support.storages import OF_SERVERS, open_storage
from tests.support.stored_table import StoredTable, orders_schema

REPOSITORY = Path(__file__).parents[2]
STORES = (OF_SERVERS[0], OF_SERVERS[-1])
FULL_SIZE = "DYNAMIC_TABLES_FULL_SIZE"
"""Set this variable to let eight processes commit fifty times each, on each store: some minutes on two cores."""


def table_on(environment: Environment) -> StoredTable:
    return StoredTable(orders_schema({"manifest.merge-min-count": "4"}), environment)


def test_threads_with_stores_of_their_own_lose_nothing() -> None:
    files = MemoryFileIO()
    commits, writers = 12, 6

    def write(writer: int) -> None:
        table = table_on(system_environment(files))
        for n in range(commits):
            table.append([("a", 1000 * writer + n, str(writer))], user=str(writer), identifier=n)

    with ThreadPoolExecutor(writers) as threads:
        list(threads.map(write, range(writers)))
    table = table_on(system_environment(files))
    expected = [("a", 1000 * writer + n, str(writer)) for writer in range(writers) for n in range(commits)]
    assert table.rows() == sorted(expected, key=repr)
    assert table.store.snapshots.latest_id() == writers * commits
    check_history(table)


def test_threads_that_share_one_store_lose_nothing() -> None:
    table = table_on(system_environment(MemoryFileIO()))
    messages = [table.messages([("a", n, "x")]) for n in range(24)]
    with ThreadPoolExecutor(6) as threads:
        snapshots = list(threads.map(lambda each: table.commit(each).id, messages))
    assert sorted(snapshots) == list(range(1, 25))
    assert len(table.rows()) == 24
    check_history(table)


def test_one_commit_replayed_by_many_at_once_happens_once() -> None:
    files = MemoryFileIO()

    def write(_: int) -> int:
        table = table_on(system_environment(files))
        return table.append([("a", 1, "x")], user="stream", identifier=5).id

    with ThreadPoolExecutor(6) as threads:
        assert set(threads.map(write, range(12))) == {1}
    assert table_on(system_environment(files)).store.snapshots.latest_id() == 1


def test_of_many_compactions_of_one_bucket_one_wins_and_no_row_is_lost() -> None:
    files = MemoryFileIO()
    table = table_on(system_environment(files))
    for n in range(6):
        table.append([("a", n, "x"), ("a", 0, str(n))])

    def compact(_: int) -> bool:
        other = table_on(system_environment(files))
        messages = other.compaction_messages()
        barrier.wait()
        try:
            other.commit(messages)
        except CommitConflictError:
            other.store.abort(messages)
            return False
        return True

    barrier = threading.Barrier(4)
    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(compact, range(4))) == 1
    assert table.rows() == [("a", 0, "5"), *(("a", n, "x") for n in range(1, 6))]


@pytest.mark.integration
@pytest.mark.parametrize("name", STORES)
def test_processes_lose_nothing_and_repeat_nothing(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    storage = open_storage(name, request, tmp_path)
    table = StoredTable(orders_schema(), system_environment(storage.files), root=storage.root)
    writers, commits = (8, 50) if os.environ.get(FULL_SIZE) else (4, 6)
    command = [sys.executable, "-m", committing_process.__name__, storage.root, json.dumps(dict(storage.options))]
    processes = [
        subprocess.Popen(
            [*command, str(writer), str(commits)],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for writer in range(writers)
    ]
    for process in processes:
        output, _ = process.communicate(timeout=1200)
        assert process.returncode == 0, output
    expected = [("a", 1000 * w + n, str(w)) for w in range(writers) for n in range(commits)]
    expected += [("counters", w, str(commits - 1)) for w in range(writers)]
    assert table.rows() == sorted(expected, key=repr)
    check_history(table)
    check_that_nothing_strays(table)


def check_that_nothing_strays(table: StoredTable) -> None:
    """Check that only data files of repeated commits were orphaned, and that a clean-up removes all of them."""
    store = table.reopened()
    orphans = store.orphans.remove(modified_until_ms=2**62, dry_run=False).paths
    assert all("/data-" in path for path in orphans)
    lying = every_file(table.environment.file_io, table.root)
    assert {path for path in lying if "/data-" in path} == needed_by_snapshots(store)
    assert not [path for path in lying if path.endswith(".tmp")]


def check_history(table: StoredTable) -> None:
    """Check that every identity occurs once, and that each snapshot's counts match its files."""
    store = table.reopened()
    latest = store.snapshots.latest_id() or 0
    snapshots = [store.snapshots.load(snapshot_id) for snapshot_id in range(1, latest + 1)]
    identities = [(each.commit_user, each.commit_identifier) for each in snapshots if each.commit_user.isdigit()]
    assert len(identities) == len(set(identities))
    for snapshot in snapshots:
        assert store.scan.plan(snapshot).row_count == snapshot.total_record_count
