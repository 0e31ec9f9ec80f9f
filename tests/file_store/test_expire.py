"""Old snapshots expire, together with exactly the files that only they need."""

from __future__ import annotations

import json

import pytest

from storage_lib.errors import InvalidInputError, NotFoundError, SnapshotExpiredError
from storage_lib.file_store.expire import ExpireResult
from storage_lib.file_store.snapshot.snapshot_json import encode_snapshot
from storage_lib.io.local.memory_file_io import MemoryFileIO
from tests.support.fake_environment import FakeClock, fake_environment
from tests.support.faulty_file_io import Fault, FaultKind, FaultyFileIO, SimulatedCrash
from tests.support.stored_table import StoredTable, orders_schema


@pytest.fixture
def lived(table: StoredTable) -> StoredTable:
    """Create five snapshots: three versions of a row, a compaction of them, and another row."""
    for item in ("x", "y", "z"):
        table.append([("a", 1, item)])
    table.compact()
    table.append([("a", 2, "w")])
    return table


def every_file(table: StoredTable) -> set[str]:
    """Return all files but those that list the commits of expired snapshots."""

    def below(directory: str) -> set[str]:
        found = set()
        for each in table.environment.file_io.list_directory(directory):
            path = f"{directory}/{each.name}"
            found |= below(path) if each.is_directory else {path.removeprefix(f"{table.root}/")}
        return found

    return {path for path in below(table.root) if not path.startswith("commits/")}


def needed_files(table: StoredTable, *snapshot_ids: int) -> set[str]:
    """Return the files of these snapshots, including snapshot files, hints and schema."""
    store = table.reopened()
    names = {"schema/schema-0", "snapshot/LATEST", "snapshot/EARLIEST"}
    for snapshot_id in snapshot_ids:
        snapshot = store.snapshots.load(snapshot_id)
        names.add(f"snapshot/snapshot-{snapshot_id}")
        for name in (snapshot.base_manifest_list, snapshot.delta_manifest_list):
            manifests = store._manifests.read_list(name)
            names |= {f"manifest/{each}" for each in (name, *(manifest.file_name for manifest in manifests))}
        for entry in store.scan.plan(snapshot).entries:
            names |= {path.removeprefix(f"{table.root}/") for path in store._data_files.of(entry)}
    return names


def test_what_is_kept_is_exactly_what_the_kept_snapshots_need(lived: StoredTable) -> None:
    result = lived.store.expire.expire(retain_max=2)
    assert result == ExpireResult(snapshot_count=3, data_file_count=3, manifest_count=6, earliest_id=4)
    assert every_file(lived) == needed_files(lived, 4, 5)
    assert lived.rows() == [("a", 1, "z"), ("a", 2, "w")]


def test_expired_snapshots_say_so_and_the_kept_ones_are_whole(lived: StoredTable) -> None:
    lived.store.expire.expire(retain_max=3)
    with pytest.raises(SnapshotExpiredError, match=r"snapshot 2.*the earliest kept is 3"):
        lived.store.snapshots.load(2)
    assert lived.rows(lived.store.snapshots.load(3)) == [("a", 1, "z")]
    assert lived.store.snapshots.earliest_id() == 3
    assert lived.reopened().snapshots.earliest_id() == 3


def test_the_newest_snapshot_never_goes(lived: StoredTable) -> None:
    lived.store.expire.expire(retain_max=1, older_than_millis=2**60)
    assert (lived.store.snapshots.earliest_id(), lived.store.snapshots.latest_id()) == (5, 5)
    assert lived.rows() == [("a", 1, "z"), ("a", 2, "w")]


def test_without_age_or_maximum_nothing_is_expired(lived: StoredTable) -> None:
    before = every_file(lived)
    assert lived.store.expire.expire() == ExpireResult(earliest_id=1)
    assert every_file(lived) == before


def test_an_empty_table_has_nothing_to_expire(table: StoredTable) -> None:
    assert table.store.expire.expire(retain_max=1) == ExpireResult()


@pytest.mark.parametrize("counts", [{"retain_min": 0}, {"retain_max": 0}])
def test_at_least_one_snapshot_has_to_stay(lived: StoredTable, counts: dict[str, int]) -> None:
    with pytest.raises(InvalidInputError, match="newest snapshot has to stay"):
        lived.store.expire.expire(**counts)


def test_snapshots_older_than_an_age_go_but_the_minimum_stays() -> None:
    clock = FakeClock()
    table = StoredTable(orders_schema(), fake_environment(clock=clock))
    for n in range(6):
        table.append([("a", 1, str(n))])
        clock.pass_time(60)
    third = table.store.snapshots.load(3).time_millis
    assert table.store.expire.expire(older_than_millis=third).earliest_id == 3
    assert table.store.expire.expire(older_than_millis=2**60, retain_min=2).earliest_id == 5


def test_one_run_may_be_kept_short(lived: StoredTable) -> None:
    expired = [lived.store.expire.expire(retain_max=1, snapshot_count_max=2).snapshot_count for _ in range(3)]
    assert expired == [2, 2, 0]


def test_a_consumer_keeps_what_it_has_yet_to_read(lived: StoredTable) -> None:
    consumer = f"{lived.paths.consumer_directory}/consumer-etl"
    lived.environment.file_io.write_bytes(consumer, json.dumps({"nextSnapshot": 3}).encode())
    lived.store.expire.expire(retain_max=1)
    assert lived.store.snapshots.earliest_id() == 3
    assert lived.rows(lived.store.snapshots.load(3)) == [("a", 1, "z")]


def test_a_tag_keeps_its_files_but_not_the_snapshots_after_it(lived: StoredTable) -> None:
    tagged = lived.store.snapshots.load(2)
    document = {**json.loads(encode_snapshot(tagged)), "tagCreateTime": [2026, 11, 21]}
    tag = f"{lived.paths.tag_directory}/tag-audit"
    lived.environment.file_io.write_bytes(tag, json.dumps(document).encode())
    kept = needed_files(lived, 2) - {"snapshot/snapshot-2"}
    lived.store.expire.expire(retain_max=1)
    assert every_file(lived) == kept | needed_files(lived, 5) | {"tag/tag-audit"}
    assert lived.rows(tagged, store=lived.reopened()) == [("a", 1, "y")]


def test_a_tag_whose_metadata_is_gone_stops_the_expiry_before_anything_is_deleted(lived: StoredTable) -> None:
    """Without knowing which files the tag needs, deletion would be unsafe."""
    tagged = lived.store.snapshots.load(2)
    lived.environment.file_io.write_bytes(f"{lived.paths.tag_directory}/tag-audit", encode_snapshot(tagged))
    lived.environment.file_io.delete(lived.paths.manifest_path(tagged.base_manifest_list))
    before = every_file(lived)
    with pytest.raises(NotFoundError):
        lived.reopened().expire.expire(retain_max=1)
    assert every_file(lived) == before


def test_a_file_moved_to_another_level_is_not_deleted_with_its_old_place(table: StoredTable) -> None:
    table.append([("a", 1, "x")])
    table.append([("b", 1, "y")])
    snapshot = table.compact()
    assert snapshot is not None
    names = [entry.file.file_name for entry in table.store.scan.delta(snapshot)]
    table.store.expire.expire(retain_max=1)
    assert len(set(names)) <= len(names)
    assert table.rows(store=table.reopened()) == [("a", 1, "x"), ("b", 1, "y")]


def test_a_crash_at_any_io_is_finished_by_the_next_run() -> None:
    at = 0
    while True:
        at += 1
        files = MemoryFileIO()
        table = StoredTable(orders_schema(), fake_environment(files, names="sound"))
        for item in ("x", "y", "z"):
            table.append([("a", 1, item)])
        table.compact()
        table.append([("a", 2, "w")])
        faulty = FaultyFileIO(files, Fault(FaultKind.CRASH_BEFORE, at=at, path="/t/"))
        try:
            dying = StoredTable(orders_schema(), fake_environment(faulty, names="dying"))
            dying.store.expire.expire(retain_max=2)
        except SimulatedCrash:
            earliest = table.reopened().snapshots.earliest_id() or 0
            for snapshot_id in range(earliest, 6):
                assert table.rows(table.reopened().snapshots.load(snapshot_id), store=table.reopened())
            table.reopened().expire.expire(retain_max=2)
            assert every_file(table) == needed_files(table, 4, 5), at
        else:
            break
    assert at > 20


def test_two_expiries_at_once_do_no_harm(lived: StoredTable) -> None:
    other = lived.reopened()
    other.snapshots.latest()
    lived.store.expire.expire(retain_max=2)
    other.expire.expire(retain_max=2)
    assert every_file(lived) == needed_files(lived, 4, 5)
