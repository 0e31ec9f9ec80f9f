"""Snapshots are found by number, tag and time, and tagged snapshots survive expiry."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from storage_lib import (
    AlreadyExistsError,
    CorruptFileError,
    DynamicTable,
    InvalidInputError,
    MemoryCatalog,
    NotFoundError,
    SnapshotExpiredError,
)
from storage_lib.schema.filter.column_reference import col
from tests.support.every_file import data_files, needed_by_snapshots
from tests.support.fake_environment import STARTED_MILLIS, FakeClock, fake_environment
from tests.support.orders_table import orders, reopened, rows


def at(table: DynamicTable, **when: object) -> set[str]:
    return {f"{row['dt']} {row['id']} {row['price']}" for row in table.to_arrow(**when).to_pylist()}  # type: ignore[arg-type]


def pass_time(table: DynamicTable, seconds: float) -> None:
    clock = table.environment.clock
    assert isinstance(clock, FakeClock)
    clock.pass_time(seconds)


@pytest.fixture
def lived() -> DynamicTable:
    """Create three versions of a row, a minute apart; the third is compacted."""
    table = orders(None, **{"log.system": "none"})
    for price in (1, 2, 3):
        table.append(rows(f"+U a 1 {price}"))
        pass_time(table, 60)
    table.compact()
    return table


def test_a_snapshot_is_read_by_number_tag_and_time(lived: DynamicTable) -> None:
    lived.tags.create("second", 2)

    assert at(lived, snapshot_id=1) == {"a 1 1"}
    assert at(lived, tag="second") == {"a 1 2"}
    assert at(lived, timestamp=STARTED_MILLIS) == {"a 1 1"}
    assert at(lived, timestamp=STARTED_MILLIS + 59_999) == {"a 1 1"}
    assert at(lived, timestamp=STARTED_MILLIS + 60_000) == {"a 1 2"}
    assert at(lived, timestamp=STARTED_MILLIS + 10**9) == {"a 1 3"}


def test_a_time_is_also_a_datetime_or_iso_text(lived: DynamicTable) -> None:
    second = datetime.fromtimestamp(STARTED_MILLIS / 1000, UTC) + timedelta(seconds=60)

    assert at(lived, timestamp=second) == {"a 1 2"}
    assert at(lived, timestamp=second.isoformat()) == {"a 1 2"}
    assert lived.count(timestamp=second, filter=col("price") == 2) == 1
    assert lived.lookup([{"dt": "a", "id": 1}], timestamp=second)["price"].to_pylist() == [2]
    changed = lived.changes(start_timestamp=second - timedelta(seconds=1), end_timestamp=second.isoformat())
    assert changed.read_all().num_rows == 0
    changed = lived.changes(start_timestamp=second, end_timestamp=second + timedelta(seconds=1))
    assert changed.read_all()["price"].to_pylist()[-1] == 2
    with pytest.raises(InvalidInputError, match="has no time zone"):
        lived.read(timestamp=second.replace(tzinfo=None))

    lived.rollback_to(timestamp=second)

    assert at(lived) == {"a 1 2"}


def test_the_tables_options_choose_the_snapshot_of_a_read_that_names_none() -> None:
    catalog = MemoryCatalog(environment=fake_environment())
    table = orders(catalog)
    for price in (1, 2):
        table.append(rows(f"+U a 1 {price}"))
        pass_time(table, 60)
    table.tags.create("first", 1)

    for key, value in (
        ("scan.snapshot-id", "1"),
        ("scan.tag-name", "first"),
        ("scan.timestamp-millis", STARTED_MILLIS),
    ):
        other = MemoryCatalog({key: str(value)}, environment=table.environment)
        assert at(other.load_table(table.name)) == {"a 1 1"}, key
        assert at(other.load_table(table.name), snapshot_id=2) == {"a 1 2"}


def test_a_read_of_two_snapshots_at_once_is_refused(lived: DynamicTable) -> None:
    with pytest.raises(InvalidInputError, match="not several"):
        lived.read(snapshot_id=1, timestamp=STARTED_MILLIS)


def test_a_moment_before_the_first_snapshot_and_one_that_expired_are_told_apart(lived: DynamicTable) -> None:
    with pytest.raises(NotFoundError, match="no snapshot yet"):
        lived.read(timestamp=STARTED_MILLIS - 1)
    lived.maintenance.expire_snapshots(retain_last=1)
    with pytest.raises(SnapshotExpiredError, match="earliest kept is 4"):
        lived.read(timestamp=STARTED_MILLIS + 60_000)


def test_a_tag_outlives_its_snapshot_and_its_deletion_takes_exactly_its_files(lived: DynamicTable) -> None:
    lived.tags.create("second", 2)
    lived.maintenance.expire_snapshots(retain_last=1)
    assert at(reopened(lived), tag="second") == {"a 1 2"}
    assert len(data_files(lived)) == 3

    lived.tags.delete("second")

    assert data_files(lived) == needed_by_snapshots(reopened(lived).context.file_store)
    assert len(data_files(lived)) == 1
    with pytest.raises(NotFoundError, match=r"there is no tag 'second'.*none"):
        lived.read(tag="second")


def test_two_tags_of_one_snapshot_keep_it_for_each_other(lived: DynamicTable) -> None:
    lived.tags.create("second", 2)
    lived.tags.create("twin", 2)
    lived.maintenance.expire_snapshots(retain_last=1)

    lived.tags.delete("twin")

    assert at(reopened(lived), tag="second") == {"a 1 2"}


def test_deleting_the_tag_of_a_retained_snapshot_takes_no_file(lived: DynamicTable) -> None:
    before = data_files(lived)
    lived.tags.create("second", 2)
    lived.tags.delete("second")
    assert data_files(lived) == before


def test_a_tag_whose_time_has_passed_goes_when_asked(lived: DynamicTable) -> None:
    lived.tags.create("for a day".replace(" ", "-"), 1, time_retained="1 d")
    lived.tags.create("for-an-hour", 2, time_retained=timedelta(hours=1))
    lived.tags.create("for-ever", 3)
    pass_time(lived, 3600)

    assert lived.tags.expire() == ("for-an-hour",)
    pass_time(lived, 23 * 3600)
    assert lived.tags.expire() == ("for-a-day",)
    pass_time(lived, 10**9)
    assert lived.tags.expire() == ()
    assert [tag.name for tag in lived.tags.list()] == ["for-ever"]


def test_a_tag_tells_when_it_was_made_and_for_how_long(lived: DynamicTable) -> None:
    made = lived.tags.create("kept", 2, time_retained="90 min")
    assert lived.tags.list() == (made,)
    assert made.create_time_ms == STARTED_MILLIS + 180_000
    assert made.time_retained_ms == 90 * 60_000


@pytest.mark.parametrize("name", ["", "5", "a/b", "../x", ".hidden", "x" * 200, "a b"])
def test_a_name_that_is_none_is_refused(lived: DynamicTable, name: str) -> None:
    with pytest.raises(InvalidInputError, match="is not a valid name for a tag"):
        lived.tags.create(name)
    assert lived.tags.list() == ()


def test_what_can_not_be_tagged_is_refused(lived: DynamicTable) -> None:
    lived.tags.create("taken")
    with pytest.raises(AlreadyExistsError, match="'taken' already"):
        lived.tags.create("taken", 1)
    with pytest.raises(NotFoundError, match="snapshot 9"):
        lived.tags.create("late", 9)
    lived.maintenance.expire_snapshots(retain_last=1)
    with pytest.raises(SnapshotExpiredError):
        lived.tags.create("early", 2)
    for wrong in (timedelta(0), "soon", f"{10**18} d"):
        with pytest.raises(InvalidInputError, match="time_retained"):
            lived.tags.create("odd", time_retained=wrong)
    with pytest.raises(InvalidInputError, match="no snapshot to tag"):
        orders(MemoryCatalog(environment=fake_environment())).tags.create("empty")
    assert [tag.name for tag in lived.tags.list()] == ["taken"]


def test_a_tag_made_while_its_snapshot_is_expired_is_taken_back(
    lived: DynamicTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EARLIEST has passed the snapshot and the tags have been read: a tag created now would protect nothing."""
    create = lived.context.file_store.tags.create

    def create_late(tag: object) -> bool:
        lived.context.file_store.snapshots._files.write_earliest(3)
        return create(tag)  # type: ignore[arg-type]

    monkeypatch.setattr(lived.context.file_store.tags, "create", create_late)
    with pytest.raises(SnapshotExpiredError, match="before tag 'late' could keep it"):
        lived.tags.create("late", 2)
    assert lived.tags.list() == ()


def test_a_consumer_keeps_what_it_has_yet_to_read(lived: DynamicTable) -> None:
    lived.consumers.create("etl", 3)
    lived.maintenance.expire_snapshots(retain_last=1)
    assert lived.inspect.snapshots()["snapshot_id"].to_pylist() == [3, 4]

    lived.consumers.advance("etl", 4)
    lived.maintenance.expire_snapshots(retain_last=1)
    assert lived.inspect.snapshots()["snapshot_id"].to_pylist() == [4]
    with pytest.raises(SnapshotExpiredError, match="snapshot 2 has been expired"):
        lived.consumers.advance("etl", 2)
    assert [(each.name, each.next_snapshot_id) for each in lived.consumers.list()] == [("etl", 4)]

    lived.consumers.delete("etl")
    assert lived.consumers.list() == ()
    with pytest.raises(NotFoundError, match="no consumer 'etl'"):
        lived.consumers.delete("etl")


def test_a_consumer_that_says_nothing_for_long_is_forgotten(lived: DynamicTable) -> None:
    lived.consumers.create("old")
    pass_time(lived, 7200)
    lived.consumers.create("new")
    assert lived.consumers.expire(older_than=timedelta(hours=1)) == ("old",)
    assert [each.name for each in lived.consumers.list()] == ["new"]


def test_a_consumer_file_that_says_nothing_stops_the_expiry(lived: DynamicTable) -> None:
    path = f"{lived.location}/consumer/consumer-broken"
    lived.environment.file_io.write_bytes(path, b"")
    with pytest.raises(CorruptFileError, match="has no valid next snapshot"):
        lived.maintenance.expire_snapshots(retain_last=1)
    assert lived.inspect.snapshots().num_rows == 4
