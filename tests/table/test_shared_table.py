"""Threads that share a table object: every part is built once, and only the parts that are used."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps

import pyarrow as pa
import pytest

from storage_lib import AddColumn, DynamicTable, MemoryCatalog, open_catalog
from storage_lib.file_store.cleanup.file_deletion import FileDeletion
from storage_lib.file_store.commit import FileStoreCommit
from storage_lib.file_store.data_file.key_cache import KeyCache
from storage_lib.file_store.manifest.manifest_directory import ManifestDirectory
from storage_lib.file_store.read import FileStoreRead
from storage_lib.file_store.scan import FileStoreScan
from storage_lib.file_store.snapshot.snapshot_history import SnapshotHistory
from storage_lib.file_store.store import FileStore
from storage_lib.table.assembly.table_reads import TableReads
from storage_lib.table.assembly.table_writes import TableWrites
from storage_lib.table.commit.log_repair import LogRepair
from storage_lib.table.commit.snapshot_publisher import SnapshotPublisher
from storage_lib.table.commit.table_commit import TableCommit
from storage_lib.table.commit.writer_leases import WriterLeases
from storage_lib.table.evolve.table_branches import TableBranches
from storage_lib.table.namespaces.table_inspection import TableInspection
from storage_lib.table.namespaces.table_maintenance import TableMaintenance
from storage_lib.table.protocol.lease import TableLeases
from storage_lib.table.read.batch_reads import BatchReads
from storage_lib.table.stream.table_streams import TableStreams
from storage_lib.table.write.task_writes import TaskWrites

ROUNDS = 10
THREADS_PER_VERB = 2
WAIT_SECONDS = 120
COLUMNS = pa.schema([("id", pa.int64()), ("price", pa.int64())])
ROWS = pa.table({"id": [1, 2], "price": [10, 20]})
PARTS = (
    *(FileDeletion, FileStoreCommit, KeyCache, ManifestDirectory, FileStoreRead, FileStoreScan, SnapshotHistory),
    *(FileStore, TableReads, TableWrites, LogRepair, SnapshotPublisher, TableCommit, WriterLeases, TableLeases),
    *(TableBranches, TableInspection, TableMaintenance, BatchReads, TableStreams, TaskWrites),
)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the constructions of each kind of part."""
    counts: Counter[str] = Counter()
    for part in PARTS:
        monkeypatch.setattr(part, "__init__", counted(part.__init__, part.__name__, counts))
    return counts


def counted(begin: Callable[..., None], name: str, counts: Counter[str]) -> Callable[..., None]:
    """Return a constructor that also counts its calls."""

    @wraps(begin)
    def init(self: object, *arguments: object, **named: object) -> None:
        counts[name] += 1
        begin(self, *arguments, **named)

    return init


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    """Switch threads as often as Python can, so that a missing lock is noticed."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def verbs_of(table: DynamicTable) -> list[Callable[[], object]]:
    """Return uses of the table that need many different parts, and share others."""
    return [
        table.to_arrow,
        partial(table.append, ROWS),
        partial(table.lookup, [{"id": 1}]),
        lambda: table.changes(start_snapshot_id=0).read_all(),
        lambda: table.stream().poll(),
        table.describe,
        lambda: table.inspect.system_table("snapshots"),
        lambda: table.maintenance.expire_snapshots(retain_last=1000),
        lambda: table.branches.expire(dry_run=True),
        lambda: table.new_write().leases,
    ]


@pytest.mark.usefixtures("frequent_switches")
def test_a_table_shared_by_threads_builds_each_part_once(built: Counter[str]) -> None:
    for number in range(ROUNDS):
        catalog = MemoryCatalog()
        catalog.create_table("shop.orders", COLUMNS, primary_key=["id"]).append(ROWS)
        table = catalog.load_table("shop.orders")
        built.clear()
        built[FileStore.__name__] = 1  # by load_table
        verbs = verbs_of(table) * THREADS_PER_VERB
        ready = threading.Barrier(len(verbs))

        def used(verb: Callable[[], object], ready: threading.Barrier = ready) -> None:
            ready.wait(WAIT_SECONDS)
            verb()

        with ThreadPoolExecutor(len(verbs)) as pool:
            for each in [pool.submit(used, verb) for verb in verbs]:
                each.result(WAIT_SECONDS)

        assert built == Counter({part.__name__: 1 for part in PARTS}), f"round {number}"


def test_a_read_builds_no_part_that_writes(built: Counter[str], tmp_path: object) -> None:
    open_catalog(str(tmp_path)).create_table("shop.orders", COLUMNS, primary_key=["id"]).append(ROWS)
    built.clear()

    assert open_catalog(str(tmp_path)).load_table("shop.orders").to_arrow().num_rows == 2

    assert built == Counter(
        {
            part.__name__: 1
            for part in (
                *(FileStore, FileStoreRead, FileStoreScan, ManifestDirectory, SnapshotHistory),
                *(KeyCache, TableReads, BatchReads),
            )
        }
    )


def test_a_table_under_another_schema_has_parts_of_its_own() -> None:
    table = MemoryCatalog().create_table("shop.orders", COLUMNS, primary_key=["id"])
    table.append(ROWS)
    tags, inspect = table.tags, table.inspect

    other = table.alter(AddColumn("note", "STRING"))

    assert table.tags is tags
    assert table.inspect is inspect
    assert table.refresh(schema_id=table.schema.id) is table
    assert other.tags is not tags
    assert other.to_arrow().schema.names == ["id", "price", "note"]
