"""Whatever happens to the commit request, the commit takes effect once or not at all, and the caller knows which.

On every storage: the response is lost, is a 503 although the request succeeded, or comes late because the request
did; or the request fails without effect. Then on a real S3 server behind a network with the same faults.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from local_s3 import LocalS3
from storage_lib.errors import RetryableError
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.io.environment import system_environment
from storage_lib.io.file_io import FileIO
from storage_lib.io.remote.object_store_file_io import ObjectStoreFileIO
from tests.support.deep_tests import crossed
from tests.support.faulty_file_io import Fault, FaultKind, FaultyFileIO
from tests.support.faulty_http import FaultyHttp, HttpFault
from tests.support.storages import ALL, objects_in_memory, open_storage
from tests.support.stored_table import StoredTable, orders_schema

KINDS = (FaultKind.FAIL, FaultKind.LOSE_ANSWER, FaultKind.ANSWER_503, FaultKind.DELAY)
TWINS = tuple(each for each in ALL if each not in ("local-not-durable", "faulty-without-fault"))


def _storages_and_faults() -> Iterator[object]:
    for twin, kind, times in product(TWINS, KINDS, (1, 6)):
        name, marks = (twin, ()) if isinstance(twin, str) else (twin.values[0], twin.marks)
        # Each fault takes a second on HDFS.
        deep = (pytest.mark.deep,) if name == "hdfs" and times > 1 else ()
        yield pytest.param(name, kind, times, marks=(*marks, *deep))


def table_over(files: FileIO, root: str) -> StoredTable:
    return StoredTable(orders_schema({"bucket": "1"}), system_environment(files), root=root)


def append(table: StoredTable) -> Snapshot:
    """Commit as a task does: retry until the outcome is known; each try is another process with the same identity."""
    for _ in range(5):
        try:
            return table.append([("a", 1, "ours")], user="task", identifier=7)
        except RetryableError:
            continue
    pytest.fail("five tries were not enough")


def check_committed_once(files: FileIO, root: str, told: Snapshot, rows: list[tuple[object, ...]]) -> None:
    table = table_over(files, root)
    history = table.store.snapshots
    snapshots = [history.load(n) for n in range(1, (history.latest_id() or 0) + 1)]
    assert [each.id for each in snapshots if each.commit_user == "task"] == [told.id]
    assert table.rows() == sorted(rows, key=repr)


@pytest.mark.parametrize(("twin", "kind", "times"), list(_storages_and_faults()))
def test_a_commit_happens_once_over_every_storage(
    kind: FaultKind, times: int, twin: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Includes six faults in a row, more than one commit retries."""
    storage = open_storage(twin, request, tmp_path)
    if times > 1 and twin == "hdfs":
        times = 2  # each fault takes a second on HDFS
    table_over(storage.files, storage.root).append([("a", 1, "before"), ("a", 2, "before")])
    strikes = [Fault(kind, at=at, operation="create_if_absent", path="/snapshot-") for at in range(1, times + 1)]
    faulty = FaultyFileIO(storage.files, *strikes)

    told = append(table_over(faulty, storage.root))

    faulty.arrive()
    check_committed_once(storage.files, storage.root, told, [("a", 1, "ours"), ("a", 2, "before")])


@pytest.mark.parametrize("kind", KINDS)
def test_a_commit_that_loses_the_race_and_its_answer_commits_after_the_winner(kind: FaultKind) -> None:
    root = "s3://lake/table"
    files = objects_in_memory()
    table_over(files, root).append([("a", 1, "before")])

    class Overtaking(FaultyFileIO):
        """Lets another writer commit right before our own create, regardless of the fault."""

        overtaken = False

        def create_if_absent(self, path: str, data: bytes) -> bool:
            if "/snapshot-" in path and not self.overtaken:
                self.overtaken = True
                table_over(files, root).append([("a", 3, "rival's")])
            return super().create_if_absent(path, data)

    faulty = Overtaking(files, Fault(kind, operation="create_if_absent", path="/snapshot-"))
    told = append(table_over(faulty, root))

    faulty.arrive()
    assert told.id == 3
    check_committed_once(files, root, told, [("a", 1, "ours"), ("a", 3, "rival's")])


@pytest.mark.parametrize(("fault", "times"), crossed(HttpFault, (8, 1)))
def test_a_commit_happens_once_over_a_network_that_breaks(
    fault: HttpFault, times: int, s3: LocalS3, tmp_path: Path
) -> None:
    root = f"s3://lake{tmp_path}/table"
    sound = ObjectStoreFileIO(s3.options)
    table_over(sound, root).append([("a", 1, "before"), ("a", 2, "before")])
    with FaultyHttp(s3.endpoint) as network:
        quick = {"s3.timeout": "300ms", "s3.endpoint": network.endpoint}
        network.strike(fault, "PUT", "/snapshot-2", times=times)

        told = append(table_over(ObjectStoreFileIO({**s3.options, **quick}), root))

        network.deliver()
    check_committed_once(sound, root, told, [("a", 1, "ours"), ("a", 2, "before")])
