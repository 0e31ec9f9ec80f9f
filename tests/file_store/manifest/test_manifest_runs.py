"""A merge sorts entries by partition into several manifests, and a reader of one partition opens one of them."""

from __future__ import annotations

import pytest

from storage_lib.io.local.memory_file_io import MemoryFileIO
from storage_lib.schema.filter.column_reference import col
from tests.support.fake_environment import fake_environment
from tests.support.faulty_file_io import FaultyFileIO
from tests.support.stored_table import StoredTable, orders_schema

DAYS = [f"d{n:02d}" for n in range(20)]


@pytest.fixture
def folded(monkeypatch: pytest.MonkeyPatch) -> StoredTable:
    """Create forty commits, two of each day in random order; manifests of a run hold about four entries."""
    monkeypatch.setattr("storage_lib.file_store.committing.snapshot_draft.RUN_ENTRIES", 4)
    monkeypatch.setattr("storage_lib.file_store.scan._CHEAP_ENTRIES_MAX", 0)
    table = StoredTable(
        orders_schema({"manifest.merge-min-count": "5", "bucket": "1"}), fake_environment(FaultyFileIO(MemoryFileIO()))
    )
    for n in range(40):
        day = DAYS[n * 7 % 20]
        table.append([(day, 1, f"{day} {n}")])
    return table


def test_a_plan_of_one_partition_opens_few_manifests(folded: StoredTable) -> None:
    files = folded.environment.file_io
    assert isinstance(files, FaultyFileIO)
    snapshot = folded.store.snapshots.latest()
    assert snapshot is not None
    assert len(folded.store.scan.manifests(snapshot)) > 10
    for day in DAYS:
        reader = folded.reopened()
        before = len(files.calls)
        plan = reader.scan.plan(reader.snapshots.latest(), predicate=col("dt") == day)
        opened = [path for operation, path in files.calls[before:] if operation == "read_bytes"]
        assert len(plan.entries) == 2
        # In addition to the snapshot's two lists: the day's manifest in each run, and the unmerged manifests.
        assert len([path for path in opened if "/manifest-name" in path]) <= 6


def test_runs_hold_disjoint_partitions_and_every_row_is_read(folded: StoredTable) -> None:
    snapshot = folded.store.snapshots.latest()
    assert snapshot is not None
    runs: dict[str, list[set[bytes]]] = {}
    for manifest in folded.store.scan.manifests(snapshot):
        stem, is_run, _ = manifest.file_name.rpartition("-run-")
        if is_run:
            entries = folded.store._manifests.read_manifest(manifest)
            runs.setdefault(stem, []).append({entry.partition for entry in entries})
    assert max(len(run) for run in runs.values()) > 1
    for run in runs.values():
        assert sum(map(len, run)) == len(set.union(*run))
    assert len(folded.rows()) == 20
    assert {row[2] for row in folded.rows()} == {
        f"{day} {max(n for n in range(40) if DAYS[n * 7 % 20] == day)}" for day in DAYS
    }


def test_compaction_and_drops_go_on_over_runs(folded: StoredTable) -> None:
    rows = folded.rows()
    folded.compact()
    assert folded.rows() == rows
    folded.overwrite([], partition_filter=col("dt") == "d07")
    assert folded.rows(store=folded.reopened()) == [row for row in rows if row[0] != "d07"]
    folded.store.expire.expire(retain_max=1)
    assert folded.rows(store=folded.reopened()) == [row for row in rows if row[0] != "d07"]
