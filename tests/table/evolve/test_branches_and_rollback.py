"""A branch is written separately from the table and published atomically; a rollback creates a new snapshot."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from storage_lib import (
    AddColumn,
    AlreadyExistsError,
    DropColumn,
    DynamicTable,
    InvalidInputError,
    MemoryCatalog,
    NotFoundError,
    RenameColumn,
    SetOption,
    SnapshotExpiredError,
    StreamPosition,
    open_catalog,
)
from storage_lib.file_store.commit_message import Committable
from storage_lib.file_store.snapshot.snapshot import Snapshot
from tests.support.every_file import data_files, every_file, needed_by_snapshots
from tests.support.fake_environment import fake_environment
from tests.support.orders_table import applied, content, orders, reopened, rows, streamed

BOTH = pytest.mark.parametrize("log", ["none", "kafka"])


def table_of(log: str) -> DynamicTable:
    """Create a table of two keys, one of them updated, in two snapshots and a compaction."""
    table = orders(None, **{"log.system": log})
    table.append(rows("+I a 1 10", "+I b 2 20"))
    table.append(rows("+U a 1 11"))
    table.compact()
    return table


def all_stores(table: DynamicTable) -> set[str]:
    fresh = reopened(table)
    return needed_by_snapshots(
        fresh.context.file_store, *(fresh.branches.open(name).context.file_store for name in fresh.branches.list())
    )


def assert_the_log_tells_the_same(table: DynamicTable) -> None:
    if table.log is not None:
        assert applied(streamed(table)) == content(table)
        for snapshot_id in table.inspect.snapshots()["snapshot_id"].to_pylist():
            assert applied(streamed(table, StreamPosition(snapshot_id=snapshot_id, split_index=0))) == content(table)


def test_no_name_of_a_branch_leads_out_of_the_table(tmp_path: Path) -> None:
    """Pages and forms open what a name says."""
    catalog = open_catalog(str(tmp_path), {"log.system": "none"})
    table = catalog.create_table("shop.orders", {"id": "BIGINT"})
    table.branches.create("dev")
    other = catalog.create_table("secret.salaries", {"id": "BIGINT"})

    for name in ("dev/../../../../secret.db/salaries", "dev/../branch-dev", "..", "."):
        with pytest.raises(NotFoundError, match="there is no branch"):
            catalog.load_table(f"shop.orders$branch_{name}")
        with pytest.raises(NotFoundError, match="there is no branch"):
            table.branches.delete(name)

    assert catalog.load_table("secret.salaries").uuid == other.uuid


@BOTH
def test_a_rollback_shows_the_older_content_in_a_new_snapshot(log: str) -> None:
    table = table_of(log)

    snapshot = table.rollback_to(snapshot_id=1)

    assert snapshot is not None
    assert snapshot.id == 4
    assert content(table) == content(reopened(table)) == {"a 1 10", "b 2 20"}
    assert_the_log_tells_the_same(table)
    assert table.tags.list() == ()


@BOTH
def test_a_rollback_can_be_rolled_back_and_written_on(log: str) -> None:
    table = table_of(log)
    table.rollback_to(snapshot_id=1)
    table.append(rows("+I c 3 30"))

    table.rollback_to(snapshot_id=3)
    assert content(reopened(table)) == {"a 1 11", "b 2 20"}
    table.append(rows("-D b 2 20", "+U a 1 12"))
    table.compact()

    assert content(reopened(table)) == {"a 1 12"}
    assert_the_log_tells_the_same(table)


@BOTH
def test_a_rollback_to_a_tag_whose_snapshot_has_expired_keeps_its_files_for_good(log: str) -> None:
    table = table_of(log)
    table.tags.create("first", 1)
    table.compact()
    table.maintenance.expire_snapshots(retain_last=1)

    table.rollback_to(tag="first")
    table.tags.delete("first")
    table.append(rows("+I c 3 30"))
    table.maintenance.expire_snapshots(retain_last=1)

    assert content(reopened(table)) == {"a 1 10", "b 2 20", "c 3 30"}
    assert data_files(table) == all_stores(table)
    assert_the_log_tells_the_same(table)


def test_expiry_between_keeps_what_a_later_rollback_brought_back() -> None:
    """Snapshot 2 removes the file of snapshot 1, and 4 restores it: expiring 1 to 2 must keep it."""
    table = orders(None, **{"log.system": "none"})
    table.append(rows("+I a 1 10"))
    table.overwrite(rows("+I a 1 11"), partition={})
    table.overwrite(rows("+I a 1 12"), partition={})
    table.rollback_to(snapshot_id=1)
    table.append(rows("+I b 2 20"))

    for retain_last in (4, 3, 2, 1):
        table.maintenance.expire_snapshots(retain_last=retain_last)
        for snapshot_id in table.inspect.snapshots()["snapshot_id"].to_pylist():
            assert reopened(table).to_arrow(snapshot_id=snapshot_id).num_rows
    assert content(reopened(table)) == {"a 1 10", "b 2 20"}


def test_rolling_back_to_what_is_there_makes_no_snapshot() -> None:
    for log in ("none", "kafka"):
        table = table_of(log)
        assert table.rollback_to(snapshot_id=3) is None
        assert table.inspect.snapshots().num_rows == 3


def test_the_same_rollback_commits_once() -> None:
    for log in ("none", "kafka"):
        table = table_of(log)
        first = table.rollback_to(snapshot_id=1, commit_user="on call", commit_identifier=1)
        table.append(rows("+I c 3 30"))
        assert reopened(table).rollback_to(snapshot_id=1, commit_user="on call", commit_identifier=1) == first
        assert content(table) == {"a 1 10", "b 2 20", "c 3 30"}


def test_a_rollback_of_a_table_with_a_log_may_leave_the_log_alone() -> None:
    table = table_of("kafka")
    before = streamed(table)
    table.rollback_to(snapshot_id=1, change_tracking=False)
    assert content(table) == {"a 1 10", "b 2 20"}
    assert streamed(table) == before


def test_a_rollback_brings_back_what_others_noted_in_the_snapshot() -> None:
    """For example source offsets, so that the source is rewound as well."""
    table = orders(None, **{"log.system": "none"})
    write_context = table.new_write().begin(commit_user="ingest")
    task = table.new_write().open_task(write_context)
    task.write(rows("+I a 1 10"))
    table.new_write().commits.commit(write_context, [task.prepare_commit()], 1, properties={"source.offsets": "7"})
    table.append(rows("+I a 2 20"))
    snapshot = table.rollback_to(snapshot_id=1)
    assert snapshot is not None
    assert snapshot.properties["source.offsets"] == "7"
    assert snapshot.properties["dynamic-table.rolled-back-to"] == "1"


def test_what_can_not_be_rolled_back_to_is_refused() -> None:
    table = table_of("none")
    with pytest.raises(InvalidInputError, match="say what to roll back to"):
        table.rollback_to()
    with pytest.raises(NotFoundError, match="snapshot 9"):
        table.rollback_to(snapshot_id=9)
    with pytest.raises(NotFoundError, match="no tag 'x'"):
        table.rollback_to(tag="x")
    table.maintenance.expire_snapshots(retain_last=1)
    with pytest.raises(SnapshotExpiredError):
        table.rollback_to(snapshot_id=1)


@BOTH
def test_a_branch_is_written_and_read_beside_the_table(log: str) -> None:
    table = table_of(log)
    table.branches.create("dev")
    dev = table.branches.open("dev")

    dev.append(rows("+U a 1 99", "+I c 3 30"))
    dev.compact()
    table.append(rows("+I d 4 40"))

    assert content(dev) == content(table.branches.open("dev")) == {"a 1 99", "b 2 20", "c 3 30"}
    assert content(table) == content(reopened(table)) == {"a 1 11", "b 2 20", "d 4 40"}
    assert dev.log is None
    assert_the_log_tells_the_same(table)
    assert table.branches.list() == ("dev",)


@BOTH
def test_a_branch_is_published_at_once_and_the_log_gets_the_net_change(log: str) -> None:
    table = table_of(log)
    table.branches.create("audit")
    branch = table.branches.open("audit")
    branch.append(rows("+U a 1 12", "+I c 3 30"))
    branch.append(rows("-D b 2 20", "+U a 1 13"))
    told = streamed(table) if table.log is not None else []

    snapshot = table.branches.fast_forward("audit")

    assert snapshot is not None
    assert snapshot.id == 4
    assert content(reopened(table)) == {"a 1 13", "c 3 30"}
    if table.log is not None:
        assert sorted(streamed(table)[len(told) :]) == ["+I c 3 30", "+U a 1 13", "-D b 2 20"]
    assert_the_log_tells_the_same(table)


@BOTH
def test_a_published_branch_may_go_on_and_publishing_it_twice_changes_nothing(log: str) -> None:
    table = table_of(log)
    table.branches.create("audit")
    table.branches.open("audit").append(rows("+I c 3 30"))
    table.branches.fast_forward("audit")
    table.compact()

    assert table.branches.fast_forward("audit") is None or content(table) == {"a 1 11", "b 2 20", "c 3 30"}
    table.branches.open("audit").append(rows("+I d 4 40"))
    table.branches.fast_forward("audit")

    assert content(reopened(table)) == {"a 1 11", "b 2 20", "c 3 30", "d 4 40"}
    assert_the_log_tells_the_same(table)


@BOTH
def test_a_table_that_has_moved_on_is_not_fast_forwarded(log: str) -> None:
    table = table_of(log)
    table.branches.create("audit")
    table.branches.open("audit").append(rows("+I c 3 30"))
    table.branches.check_unchanged("audit")
    table.append(rows("+I d 4 40"))

    with pytest.raises(InvalidInputError, match="has changed since branch 'audit'"):
        table.branches.check_unchanged("audit")
    with pytest.raises(InvalidInputError, match="has changed since branch 'audit'"):
        table.branches.fast_forward("audit")

    assert content(table) == {"a 1 11", "b 2 20", "d 4 40"}
    assert table.tags.list() == ()
    assert table.context.leases.holder() is None


@BOTH
def test_a_compaction_of_the_table_does_not_stand_in_a_branchs_way(log: str) -> None:
    table = orders(None, **{"log.system": log})
    table.append(rows("+I a 1 10"))
    table.append(rows("+U a 1 11"))
    table.branches.create("audit")
    table.branches.open("audit").append(rows("+I c 3 30"))
    table.compact()

    table.branches.fast_forward("audit")

    assert content(reopened(table)) == {"a 1 11", "c 3 30"}
    assert_the_log_tells_the_same(table)


def test_a_branch_of_a_tag_and_one_of_a_snapshot_begin_with_that_content() -> None:
    table = table_of("none")
    table.tags.create("first", 1)
    table.branches.create("of-tag", tag="first")
    table.branches.create("of-snapshot", snapshot_id=2)
    assert content(table.branches.open("of-tag")) == {"a 1 10", "b 2 20"}
    assert content(table.branches.open("of-snapshot")) == {"a 1 11", "b 2 20"}
    assert table.branches.open("of-tag").to_arrow(tag="first").num_rows == 2


def test_a_branch_of_a_table_without_a_commit_begins_empty() -> None:
    table = orders(None, **{"log.system": "none"})
    table.branches.create("first")
    assert content(table.branches.open("first")) == set()
    table.branches.open("first").append(rows("+I a 1 10"))
    table.branches.fast_forward("first")
    assert content(reopened(table)) == {"a 1 10"}


def test_expiry_of_either_side_leaves_the_other_whole_and_deletion_takes_exactly_what_is_left() -> None:
    table = table_of("none")
    table.branches.create("dev", snapshot_id=2)
    dev = table.branches.open("dev")
    dev.append(rows("+U a 1 50"))
    dev.append(rows("+U a 1 51"))
    table.append(rows("+I d 4 40"))
    table.compact()

    table.maintenance.expire_snapshots(retain_last=1)
    assert [dev.to_arrow(snapshot_id=n).num_rows for n in (2, 3, 4)] == [2, 2, 2]
    assert content(reopened(table).branches.open("dev")) == {"a 1 51", "b 2 20"}

    dev.compact()
    dev.maintenance.expire_snapshots(retain_last=1)
    assert content(reopened(table)) == {"a 1 11", "b 2 20", "d 4 40"}
    assert content(reopened(table).branches.open("dev")) == {"a 1 51", "b 2 20"}
    assert data_files(table) == all_stores(table)

    table.branches.delete("dev")
    assert data_files(table) == all_stores(table)
    assert content(reopened(table)) == {"a 1 11", "b 2 20", "d 4 40"}
    assert not [path for path in every_file(table.environment.file_io, table.location) if "/branch/" in path]
    with pytest.raises(NotFoundError, match="no branch 'dev'"):
        table.branches.open("dev")


def test_a_published_branch_may_be_deleted_and_either_side_expire() -> None:
    table = table_of("none")
    table.branches.create("audit")
    branch = table.branches.open("audit")
    branch.append(rows("+I c 3 30"))
    table.branches.fast_forward("audit")
    table.append(rows("+U c 3 31"))
    table.compact()

    table.maintenance.expire_snapshots(retain_last=1)
    assert content(reopened(table).branches.open("audit")) == {"a 1 11", "b 2 20", "c 3 30"}
    table.branches.delete("audit")

    assert content(reopened(table)) == {"a 1 11", "b 2 20", "c 3 31"}
    assert data_files(table) == all_stores(table)


def test_a_branch_of_a_table_that_others_expire_is_kept_by_a_tag_until_it_is_deleted() -> None:
    table = table_of("none")
    table.branches.create("of_ours", snapshot_id=1)
    assert table.tags.list() == ()

    table = table_of("none").alter(SetOption("snapshot.num-retained.min", "1"))
    table.tags.create("branch-mine", 1)
    table.branches.create("dev")
    table.branches.create("old", snapshot_id=1)
    with pytest.raises(AlreadyExistsError, match="branch 'old' already"):
        table.branches.create("old")

    assert {tag.name: tag.snapshot.id for tag in table.tags.list()} == {
        "branch-dev": 3, "branch-mine": 1, "branch-old": 1,
    }  # fmt: skip
    table.branches.delete("old")
    assert [tag.name for tag in table.tags.list()] == ["branch-dev", "branch-mine"]
    with pytest.raises(AlreadyExistsError, match="'branch-mine' already"):
        table.branches.create("mine", snapshot_id=2)
    table.branches.create("mine", tag="branch-mine")
    table.branches.delete("mine")
    assert [tag.name for tag in table.tags.list()] == ["branch-dev", "branch-mine"]


def test_a_branch_whose_time_has_passed_goes_when_asked_with_what_only_it_kept() -> None:
    table = table_of("none")
    before = data_files(table)
    for name, time_retained in (("for-a-day", "1 d"), ("for-an-hour", timedelta(hours=1)), ("for-ever", None)):
        table.branches.create(name, time_retained=time_retained)
        table.branches.open(name).append(rows("+I c 3 30"))

    assert table.branches.expire() == ()
    table.environment.clock.sleep(3600)
    assert table.branches.expire(dry_run=True) == ("for-an-hour",)
    assert table.branches.list() == ("for-a-day", "for-an-hour", "for-ever")
    assert table.branches.expire() == ("for-an-hour",)
    table.environment.clock.sleep(23 * 3600)
    assert table.branches.expire() == ("for-a-day",)
    assert table.branches.list() == ("for-ever",)
    table.branches.delete("for-ever")
    assert data_files(table) == before


def test_a_table_that_is_gone_does_not_read_as_one_without_rows() -> None:
    table = table_of("none")
    table.branches.create("dev")
    dev, other = (
        table.branches.open("dev"),
        orders(MemoryCatalog(environment=fake_environment()), **{"log.system": "none"}),
    )
    assert (dev.to_arrow().num_rows, other.to_arrow().num_rows) == (2, 0)

    table.branches.delete("dev")

    with pytest.raises(NotFoundError, match=r"orders\$branch_dev was dropped since it was opened"):
        dev.to_arrow()


def test_what_can_not_be_a_branch_is_refused() -> None:
    table = table_of("none")
    table.branches.create("dev")
    with pytest.raises(AlreadyExistsError, match="'dev' already"):
        table.branches.create("dev")
    for name in ("main", "", "7", "a/b"):
        with pytest.raises(InvalidInputError):
            table.branches.create(name)
    with pytest.raises(InvalidInputError, match="not both"):
        table.branches.create("x", tag="t", snapshot_id=1)
    with pytest.raises(InvalidInputError, match="is a branch itself"):
        table.branches.open("dev").branches.create("deeper")
    for act in (table.branches.delete, table.branches.fast_forward, table.branches.open):
        with pytest.raises(NotFoundError, match="branches there: dev"):
            act("nowhere")


def test_a_branch_half_made_is_none_and_is_made_anew() -> None:
    table = table_of("none")
    files = table.environment.file_io
    table.branches.create("dev")
    files.delete_tree(f"{table.location}/branch/branch-dev/schema")

    assert table.branches.list() == ()
    table.branches.create("dev", snapshot_id=1)
    assert content(table.branches.open("dev")) == {"a 1 10", "b 2 20"}


def test_a_tracked_rollback_is_refused_where_rows_are_not_replaced_by_rows() -> None:
    catalog = MemoryCatalog(environment=fake_environment())
    table = orders(catalog, **{"log.system": "none"})
    table.append(rows("+I a 1 10"))
    table.append(rows("+I a 2 20"))
    table._writes.restore._refuse_tracked = "it has no primary key"
    with pytest.raises(InvalidInputError, match="use change_tracking=False"):
        table.rollback_to(snapshot_id=1, change_tracking=True)
    assert table.context.leases.holder() is None


def test_a_file_that_a_rollback_brought_back_can_be_compacted_once_more() -> None:
    # Given: a file that moved to another level under its own name, and was restored to its former level.
    table = orders(None, **{"log.system": "none"})
    table.append(rows("+I a 1 10"))
    table.compact()
    table.append(rows("+I a 2 20"))
    table.rollback_to(snapshot_id=1)

    table.compact()

    assert content(reopened(table)) == {"a 1 10"}
    table.maintenance.expire_snapshots(retain_last=1)
    table.maintenance.remove_orphan_files(older_than=timedelta(0))
    table.compact()
    assert content(reopened(table)) == content(table) == {"a 1 10"}


def test_what_is_taken_out_while_a_rollback_commits_comes_back_for_every_reader() -> None:
    table = orders(None, **{"log.system": "none"})
    table.append(rows("+I a 1 10"))
    table.append(rows("+I b 2 20"))
    other = reopened(table)

    def somebody_drops_day_a_first(latest: Snapshot | None) -> None:
        if latest is not None and latest.id == 2:
            other.maintenance.drop_partitions([{"dt": "a"}])

    table.context.file_store.commit.restore(
        Committable(commit_user="operator", commit_identifier=1),
        table.context.file_store.snapshots.load(1),
        guard=somebody_drops_day_a_first,
    )

    assert content(reopened(table)) == content(table) == {"a 1 10"}


@BOTH
def test_a_branch_that_was_altered_is_published_with_its_schema(log: str) -> None:
    table = table_of(log)
    table.branches.create("dev")
    branch = table.branches.open("dev").alter(AddColumn("note", "STRING"))
    branch.append(rows("+I b 3 30").append_column("note", pa.array(["new"])))

    table.branches.fast_forward("dev")

    table = table.refresh()
    assert sorted((row["id"], row["note"]) for row in table.to_arrow().to_pylist()) == [
        (1, None),
        (2, None),
        (3, "new"),
    ]
    table.append(rows("+U b 3 31").append_column("note", pa.array(["newer"])))
    assert_the_log_tells_the_same(table)


def test_a_fast_forward_that_is_refused_leaves_the_schema_alone() -> None:
    table = table_of("none")
    table.branches.create("dev")
    table.branches.open("dev").alter(DropColumn("price"))
    table.append(rows("+I a 5 50"))

    with pytest.raises(InvalidInputError, match="has changed since branch 'dev' was made"):
        table.branches.fast_forward("dev")

    assert table.refresh() is table


def test_a_branch_is_not_published_where_the_log_could_not_bear_its_schema() -> None:
    table = table_of("kafka")
    table.branches.create("dev")
    table.branches.open("dev").alter(RenameColumn("price", "cost")).append(
        rows("+I a 5 50").rename_columns({"price": "cost"})
    )

    with pytest.raises(InvalidInputError, match="'price' can't be renamed to 'cost': the records in the log"):
        table.branches.fast_forward("dev")

    assert table.refresh() is table
