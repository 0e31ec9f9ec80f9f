"""Tables without a primary key through the public interface: equal rows are counted, in files, log and changes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from storage_lib import (
    CommitConflictError,
    DynamicTable,
    InvalidInputError,
    LeaseLostError,
    MemoryCatalog,
    StreamPosition,
)
from storage_lib.table.commit.table_overwrite import scope_of
from storage_lib.table.stream.hybrid_source import HybridSource
from tests.support.fake_environment import fake_environment
from tests.support.orders_table import COLUMNS, NAME, reopened, rows


def counted(*, log: bool = True, **options: str) -> DynamicTable:
    """Create a table of (dt, id, price) without a key, partitioned by dt, in two buckets."""
    catalog = MemoryCatalog(environment=fake_environment())
    spelled = {key.replace("_", "-"): value for key, value in options.items()}
    given = {"bucket": "2", **({} if log else {"log.system": "none"}), **spelled}
    return catalog.create_table(NAME, COLUMNS, partition_by=["dt"], options=given)


def content(table: DynamicTable) -> list[str]:
    return sorted(" ".join(map(str, row.values())) for row in table.to_arrow().to_pylist())


def news(source: HybridSource) -> list[str]:
    """Return the changes since the last call, sorted: ``"+I a 1 10"``."""
    found: list[str] = []
    while (batch := source.poll()) is not None:
        found += [f"{row.pop('_row_kind')} {' '.join(map(str, row.values()))}" for row in batch.to_pylist()]
    return sorted(found)


BOTH = pytest.mark.parametrize("log", [True, False], ids=["with log", "without log"])


@BOTH
def test_rows_are_kept_as_often_as_they_came_and_taken_away_one_at_a_time(log: bool) -> None:  # noqa: FBT001
    table = counted(log=log)
    table.append(rows("+I a 1 10", "+I a 1 10", "+I a 2 -", "+I b 1 10"))
    table.append(rows("-D a 1 10", "-U a 2 -", "+U a 2 20"))

    assert content(table) == ["a 1 10", "a 2 20", "b 1 10"]
    table.compact()
    assert content(table) == ["a 1 10", "a 2 20", "b 1 10"]
    assert content(reopened(table)) == content(table)


@BOTH
def test_a_stream_of_changes_adds_up_to_the_table(log: bool) -> None:  # noqa: FBT001
    table = counted(log=log)
    source = table.stream()
    table.append(rows("+I a 1 10", "+I a 1 10"))
    assert news(source) == ["+I a 1 10", "+I a 1 10"]
    table.append(rows("-D a 1 10", "+I b 5 50"))
    assert news(source) == ["+I b 5 50", "-D a 1 10"]
    table.append(rows("-D a 7 70"))
    assert news(source) == ["-D a 7 70"]
    table.compact()
    assert news(source) == []
    late = table.stream(position=StreamPosition(snapshot_id=2, split_index=0))
    assert news(late) == ["+I a 1 10", "+I b 5 50", "-D a 7 70"]


def test_the_log_pairs_updates_and_holds_their_old_rows() -> None:
    table = counted(bucket="1")
    table.append(rows("+I a 1 10"))
    table.append(rows("-U a 1 10", "+U a 1 11"))
    assert news(table.stream(position=StreamPosition(snapshot_id=1, split_index=0))) == [
        "+I a 1 10",
        "+U a 1 11",
        "-U a 1 10",
    ]


@BOTH
def test_a_tracked_overwrite_tells_the_difference_of_counts(log: bool) -> None:  # noqa: FBT001
    table = counted(log=log)
    table.append(rows("+I a 1 10", "+I a 1 10", "+I a 2 20", "+I b 3 30"))
    source = table.stream()
    news(source)

    table.overwrite(rows("+I a 1 10", "+I a 4 40", "+I a 4 40"))

    assert content(table) == ["a 1 10", "a 4 40", "a 4 40", "b 3 30"]
    assert news(source) == ["+I a 4 40", "+I a 4 40", "-D a 1 10", "-D a 2 20"]
    table.maintenance.drop_partitions([{"dt": "a"}], change_tracking=True)
    assert content(table) == ["b 3 30"]
    assert news(source) == ["-D a 1 10", "-D a 4 40", "-D a 4 40"]


@BOTH
def test_an_untracked_overwrite_or_drop_is_not_heard_of(log: bool) -> None:  # noqa: FBT001
    table = counted(log=log)
    table.append(rows("+I a 1 10", "+I a 1 10", "+I b 3 30"))
    source = table.stream()
    news(source)

    table.overwrite(rows("+I a 5 50", "+I a 5 50"), change_tracking=False)
    assert content(table) == ["a 5 50", "a 5 50", "b 3 30"]
    table.maintenance.drop_partitions([{"dt": "b"}])
    assert content(table) == ["a 5 50", "a 5 50"]
    table.append(rows("-D a 5 50"))
    assert content(table) == ["a 5 50"]
    assert news(source) == ["-D a 5 50"]


def test_appends_without_a_log_wait_for_no_lease_and_add_up() -> None:
    table = counted(log=False)
    orders = [table.new_write().begin(commit_user=f"writer {n}") for n in range(3)]
    assert [write_context.lease for write_context in orders] == [None, None, None]
    for n, write_context in enumerate(orders):
        task = table.new_write().open_task(write_context)
        task.write(rows("+I a 1 10", "-D a 2 20" if n else "+I a 2 20"))
        table.new_write().commit(write_context, [task.prepare_commit()], n)

    assert content(table) == ["a 1 10"] * 3
    table.append(rows("+I a 2 20"))
    assert content(table) == ["a 1 10"] * 3
    table.append(rows("+I a 2 20"))
    assert content(table) == [*["a 1 10"] * 3, "a 2 20"]


def test_a_difference_from_rows_that_were_replaced_meanwhile_is_refused_and_leaves_nothing() -> None:
    table = counted(log=False)
    table.append(rows("+I a 1 10"))
    write_context = table.new_write().commits.open(commit_user="slow", tracked=True, is_difference=True)
    task = table.new_write().open_task(write_context)
    task.write(rows("-D a 1 10", "+I a 2 20"))
    message = task.prepare_commit()
    table.overwrite(rows("+I a 3 30"), change_tracking=False)

    with pytest.raises(CommitConflictError, match="replaced rows"):
        table.new_write().commits.commit(write_context, [message], 1)

    assert content(table) == ["a 3 30"]
    table.maintenance.expire_snapshots(retain_last=1)
    files = [
        each
        for bucket in (0, 1)
        for each in table.environment.file_io.list_directory(f"{table.location}/dt=a/bucket-{bucket}")
    ]
    assert len(files) == 1


def test_two_differences_from_one_content_do_not_both_happen() -> None:
    table = counted(log=False, **{"lease.timeout": "5 s"})
    table.append(rows("+I a 1 10"))
    slow = table.new_write().commits.open(commit_user="slow", tracked=True, is_difference=True)
    task = table.new_write().open_task(slow)
    task.write(rows("-D a 1 10"))
    message = task.prepare_commit()
    other = reopened(table)
    other.overwrite(rows("+I a 2 20"))

    with pytest.raises(LeaseLostError):
        table.new_write().commits.commit(slow, [message], 1)
    assert content(table) == ["a 2 20"]


def test_what_a_stream_appends_while_an_overwrite_runs_is_added() -> None:
    table = counted(log=False)
    table.append(rows("+I a 1 10"))
    write_context = table.new_write().begin(commit_user="backfill", tracked=False, overwrite=scope_of(None))
    task = table.new_write().open_task(write_context)
    task.write(rows("+I a 7 70"))
    table.append(rows("+I a 7 70", "-D a 1 10"))
    table.new_write().commit(write_context, [task.prepare_commit()], 1)

    assert content(table) == ["a 7 70", "a 7 70"]


@BOTH
def test_what_changed_between_snapshots_is_told_as_counts(log: bool) -> None:  # noqa: FBT001
    table = counted(log=log)
    table.append(rows("+I a 1 10", "+I a 1 10"))
    table.append(rows("-D a 1 10", "+I a 2 20"))
    table.append(rows("-D a 2 20", "+I a 3 30", "+I a 3 30"))
    net = table.changes(start_snapshot_id=1).read_all()
    told = sorted(f"{row.pop('_row_kind')} {' '.join(map(str, row.values()))}" for row in net.to_pylist())
    assert told == ["+I a 3 30", "+I a 3 30", "-D a 1 10"]


def test_a_rollback_with_a_log_takes_back_what_came_since() -> None:
    table = counted()
    first = table.append(rows("+I a 1 10", "+I a 1 10"))
    assert first is not None
    source = table.stream()
    news(source)
    table.append(rows("-D a 1 10", "+I a 2 20"))
    table.rollback_to(snapshot_id=first.id)

    assert content(table) == ["a 1 10", "a 1 10"]
    assert news(source) == ["+I a 1 10", "+I a 2 20", "-D a 1 10", "-D a 2 20"]


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_files_that_a_rollback_copies_can_be_read(file_format: str) -> None:
    table = counted(log=False, **{"file.format": file_format, "snapshot.num-retained.min": "1"})
    table.append(rows("+I a 1 10", "+I b 1 10"))
    table = reopened(table)
    table.compact()
    table.overwrite(COLUMNS.empty_table(), partition={}, change_tracking=False)
    table.rollback_to(snapshot_id=1)

    assert content(table) == ["a 1 10", "b 1 10"]
    names = [entry.file.file_name for entry in table.new_read().plan().entries]
    assert all(name.endswith(f".{file_format}-counts") for name in names), names


def test_nulls_and_not_a_number_are_rows_like_any_other() -> None:
    columns = pa.schema([("x", pa.float64()), ("s", pa.string())])
    table = MemoryCatalog(environment=fake_environment()).create_table("db.odd", columns)
    given = pa.table({"x": [None, float("nan"), -0.0, float("nan")], "s": [None, None, "z", None]}, schema=columns)
    table.append(given)
    assert table.to_arrow().num_rows == 4
    table.append(given.append_column("_row_kind", pa.array(["-D"] * 4)))
    assert table.to_arrow().num_rows == 0
    changes = table.stream(startup="from-timestamp", timestamp=0).poll()
    assert changes is not None
    assert changes.num_rows == 8


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"merge-engine": "deduplicate"}, "rows are counted"),
        ({"log.changelog-mode": "upsert"}, "use auto or all"),
        ({"bucket": "-1"}, "bucket is '-1'"),
    ],
)
def test_a_table_that_contradicts_itself_is_not_made(options: dict[str, str], remedy: str) -> None:
    with pytest.raises(InvalidInputError, match=remedy):
        MemoryCatalog(environment=fake_environment()).create_table(NAME, COLUMNS, options=options)


def test_counts_are_not_for_tables_with_a_key() -> None:
    with pytest.raises(InvalidInputError, match="for tables without"):
        MemoryCatalog(environment=fake_environment()).create_table(
            NAME, COLUMNS, primary_key=["id"], options={"merge-engine": "value-count"}
        )


@pytest.mark.parametrize("tracked", [True, False])
def test_what_was_deleted_before_it_came_is_forgotten_by_an_overwrite(tracked: bool) -> None:  # noqa: FBT001
    table = MemoryCatalog(environment=fake_environment()).create_table(NAME, COLUMNS, partition_by=["dt"])
    table.append(rows("-D a 1 10", "-D b 1 10", "+I b 2 20"))

    table.overwrite(rows(), partition={}, change_tracking=tracked)
    table.append(rows("+I a 1 10", "+I b 1 10"))

    assert content(table) == ["a 1 10", "b 1 10"]
    changes = table.changes(start_snapshot_id=1, mode="net").read_all().to_pylist()
    assert sorted(f"{row['_row_kind']} {row['dt']} {row['id']}" for row in changes) == [
        *("+I a 1", "+I a 1"),
        *("+I b 1", "+I b 1"),
        "-D b 2",
    ]
