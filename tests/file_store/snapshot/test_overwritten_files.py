"""Other engines overwrite consumers, tags and hints in place: a concurrent reader waits for the content."""

from __future__ import annotations

import json

import pytest

from storage_lib.errors import CorruptFileError, NotFoundError
from storage_lib.file_store.snapshot.snapshot_json import encode_snapshot
from tests.support.fake_environment import FakeClock, fake_environment
from tests.support.overwriting_files import OverwritingFiles
from tests.support.stored_table import StoredTable, orders_schema

CONSUMER = json.dumps({"nextSnapshot": 2}).encode()
IN_BETWEEN = [b"", CONSUMER[:10], None]


class Case:
    """Five snapshots, consumer ``etl`` that needs the second one, and a tag of the third."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.files = OverwritingFiles(self.clock)
        self.table = StoredTable(orders_schema(), fake_environment(self.files, clock=self.clock))
        for item in "vwxyz":
            self.table.append([("a", 1, item)])
        self.consumer = self.table.paths.consumer_path("etl")
        self.tag = self.table.paths.tag_path("audit")
        self.files.write_bytes(self.consumer, CONSUMER)
        self.files.write_bytes(self.tag, encode_snapshot(self.table.store.snapshots.load(3)))


@pytest.fixture
def case() -> Case:
    return Case()


@pytest.mark.parametrize("meanwhile", IN_BETWEEN)
def test_an_expiry_waits_for_a_consumer_that_is_being_overwritten(case: Case, meanwhile: bytes | None) -> None:
    case.files.overwrite(case.consumer, seconds=0.9, meanwhile=meanwhile)
    case.table.store.expire.expire(retain_max=1)
    assert case.table.store.snapshots.earliest_id() == 2


@pytest.mark.parametrize("meanwhile", IN_BETWEEN)
def test_one_consumer_is_read_again_while_it_is_overwritten(case: Case, meanwhile: bytes | None) -> None:
    case.files.overwrite(case.consumer, seconds=0.9, meanwhile=meanwhile)
    assert case.table.store.consumers.load("etl").next_snapshot_id == 2


def test_a_consumer_that_stays_unreadable_stops_the_expiry_before_anything_is_deleted(case: Case) -> None:
    case.files.overwrite(case.consumer, seconds=60)
    with pytest.raises(CorruptFileError, match="consumer-etl has no valid next snapshot"):
        case.table.store.expire.expire(retain_max=1)
    assert case.table.reopened().snapshots.earliest_id() == 1
    assert 0.9 < case.clock.monotonic() < 1.1


def test_a_consumer_that_was_deleted_after_the_listing_is_left_out(case: Case) -> None:
    case.files.overwrite(case.consumer, seconds=60, meanwhile=None)
    assert case.table.store.consumers.load_all() == []


@pytest.mark.parametrize("meanwhile", [b"", b'{"version": 3, "id": 3'])
def test_a_tag_that_is_being_written_is_read_again(case: Case, meanwhile: bytes) -> None:
    case.files.overwrite(case.tag, seconds=0.9, meanwhile=meanwhile)
    assert case.table.store.tags.load("audit").snapshot.id == 3


@pytest.mark.parametrize("meanwhile", [b"", b'{"version": 3, "id": 3', None])
def test_an_expiry_keeps_the_files_of_a_tag_that_is_being_written(case: Case, meanwhile: bytes | None) -> None:
    case.files.delete(case.consumer)
    tagged = case.table.store.snapshots.load(3)
    case.files.overwrite(case.tag, seconds=0.9, meanwhile=meanwhile)
    case.table.store.expire.expire(retain_max=1)
    assert case.table.rows(tagged, store=case.table.reopened()) == [("a", 1, "x")]


def test_a_missing_tag_is_missing_at_once(case: Case) -> None:
    with pytest.raises(NotFoundError, match="there is no tag 'other'"):
        case.table.store.tags.load("other")
    assert case.clock.slept == []


def test_expired_snapshots_stay_expired_while_the_earliest_hint_is_overwritten(case: Case) -> None:
    """Their files may still exist; a hint mistaken for missing would expose them again, without their data."""
    case.files.delete(case.consumer)
    case.table.store.snapshots.expire_below(4, frozenset())
    case.files.overwrite(f"{case.table.paths.snapshot_directory}/EARLIEST", seconds=0.9)
    assert case.table.reopened().snapshots.earliest_id() == 4


def test_a_hint_that_stays_unreadable_is_waited_for_once(case: Case) -> None:
    case.files.overwrite(f"{case.table.paths.snapshot_directory}/EARLIEST", seconds=60)
    snapshots = case.table.reopened().snapshots
    assert (snapshots.earliest_id(), snapshots.earliest_id()) == (1, 1)
    assert 0.9 < case.clock.monotonic() < 1.1
