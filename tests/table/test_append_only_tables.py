"""Append-only tables through the public interface: inserts only, no row kind in streams, no lease."""

from __future__ import annotations

import pyarrow as pa
import pytest

from storage_lib import CommitConflictError, DynamicTable, InvalidInputError, MemoryCatalog, NotFoundError
from storage_lib.table.commit.table_overwrite import scope_of
from storage_lib.table.stream.hybrid_source import HybridSource
from tests.support.fake_environment import fake_environment
from tests.support.orders_table import COLUMNS, NAME, reopened, rows


def appended(*, log: bool = False, **options: str) -> DynamicTable:
    """Create an append-only table of (dt, id, price), partitioned by dt."""
    catalog = MemoryCatalog(environment=fake_environment())
    spelled = {key.replace("_", "-"): value for key, value in options.items()}
    return catalog.create_table(
        NAME,
        COLUMNS,
        partition_by=["dt"],
        options={"write-mode": "append-only", **({} if log else {"log.system": "none"}), **spelled},
    )


def content(table: DynamicTable) -> list[str]:
    return sorted(" ".join(map(str, row.values())) for row in table.to_arrow().to_pylist())


def polled(table: DynamicTable, **start: str) -> list[str]:
    return news(table.stream(**start))  # type: ignore[arg-type]


def news(source: HybridSource) -> list[str]:
    found: list[str] = []
    while (batch := source.poll()) is not None:
        assert batch.schema.names == ["dt", "id", "price"]
        found += [" ".join(map(str, row.values())) for row in batch.to_pylist()]
    return found


@pytest.mark.parametrize("log", [False, True], ids=["without log", "with log"])
def test_equal_rows_are_kept_and_a_stream_sees_rows_without_kinds(log: bool) -> None:  # noqa: FBT001
    table = appended(log=log)
    source = table.stream()

    table.append(rows("+I a 1 10", "+I a 1 10"))
    assert source.poll().num_rows == 2  # type: ignore[union-attr]
    table.append(pa.table({"dt": ["b"], "id": [2], "price": [None]}))

    assert content(table) == ["a 1 10", "a 1 10", "b 2 None"]
    assert source.poll().to_pylist() == [{"dt": "b", "id": 2, "price": None}]  # type: ignore[union-attr]
    assert sorted(polled(table)) == content(table)
    assert source.poll() is None


@pytest.mark.parametrize("kind", ["-D", "-U", "+U"])
@pytest.mark.parametrize("log", [False, True], ids=["without log", "with log"])
def test_anything_but_an_insert_is_refused_and_nothing_is_written(kind: str, log: bool) -> None:  # noqa: FBT001
    table = appended(log=log)

    with pytest.raises(InvalidInputError, match=r"append-only, but row 1 is a change of kind"):
        table.append(rows("+I a 1 10", f"{kind} a 2 20"))

    assert table.inspect.snapshots().num_rows == 0
    assert table.context.leases.holder() is None
    assert polled(table) == []
    assert not table.environment.file_io.list_directory(f"{table.location}/dt=a/bucket-0")


def test_appends_without_a_log_wait_for_no_lease() -> None:
    table = appended()
    orders_ = [table.new_write().begin(commit_user=f"writer {n}") for n in range(3)]
    assert [write_context.lease for write_context in orders_] == [None, None, None]

    for n, write_context in enumerate(orders_):
        task = table.new_write().open_task(write_context)
        task.write(rows(f"+I a {n} 10"))
        table.new_write().commit(write_context, [task.prepare_commit()], n)

    assert content(table) == ["a 0 10", "a 1 10", "a 2 10"]


def test_with_a_log_appends_need_the_lease() -> None:
    table = appended(log=True)
    write_context = table.new_write().begin(commit_user="writer")
    assert write_context.lease is not None
    table.new_write().abort(write_context, [])


def test_the_same_identity_commits_once() -> None:
    table = appended()
    for _ in range(2):
        table.append(rows("+I a 1 10"), commit_user="dag", commit_identifier=3)
    assert content(table) == ["a 1 10"]


@pytest.mark.parametrize("log", [False, True], ids=["without log", "with log"])
def test_overwrites_and_drops_replace_and_streams_hear_nothing_of_them(log: bool) -> None:  # noqa: FBT001
    table = appended(log=log)
    table.append(rows("+I a 1 10", "+I b 2 20", "+I b 2 20"))
    source = table.stream()
    source.poll()

    table.overwrite(rows("+I a 9 90"))
    assert content(table) == ["a 9 90", "b 2 20", "b 2 20"]
    table.overwrite(rows("+I b 3 30"), partition={"dt": "b"})
    assert content(table) == ["a 9 90", "b 3 30"]
    table.maintenance.drop_partitions([{"dt": "a"}])
    assert content(table) == ["b 3 30"]
    table.overwrite(rows("+I c 4 40"), partition={})
    assert content(table) == ["c 4 40"]

    assert news(source) == []


def test_an_overwrite_that_shall_be_tracked_is_refused() -> None:
    table = appended(log=True)
    table.append(rows("+I a 1 10"))

    with pytest.raises(InvalidInputError, match="change_tracking=False"):
        table.overwrite(rows("+I a 2 20"), change_tracking=True)
    with pytest.raises(InvalidInputError, match="change_tracking=False"):
        table.maintenance.drop_partitions([{"dt": "a"}], change_tracking=True)
    with pytest.raises(NotFoundError):
        table.maintenance.drop_partitions([{"dt": "z"}])

    assert content(table) == ["a 1 10"]


def test_what_is_appended_while_an_overwrite_runs_stays() -> None:
    table = appended()
    table.append(rows("+I a 1 10"))
    write_context = table.new_write().begin(commit_user="backfill", overwrite=scope_of(None))
    task = table.new_write().open_task(write_context)
    task.write(rows("+I a 1 77"))

    table.append(rows("+I a 2 20"))
    table.new_write().commit(write_context, [task.prepare_commit()], 1)

    assert content(table) == ["a 1 77", "a 2 20"]


def test_a_compaction_that_loses_against_an_overwrite_is_dropped_without_a_trace() -> None:
    table = appended()
    for n in range(3):
        table.append(rows(f"+I a {n} 10"))
    (task,) = table.maintenance.plan_compaction()
    message = table.maintenance.run_compaction(task)
    assert message is not None
    table.overwrite(rows("+I a 9 90"))

    with pytest.raises(CommitConflictError):
        table.maintenance.commit_compaction([message])

    assert content(table) == ["a 9 90"]
    table.maintenance.expire_snapshots(retain_last=1)
    assert len(table.environment.file_io.list_directory(f"{table.location}/dt=a/bucket-0")) == 1


def test_compaction_changes_no_row_and_no_stream() -> None:
    table = appended(write_only="true")
    for n in range(6):
        table.append(rows(f"+I a {n} 10"))
    source = table.stream(startup="latest")
    source.poll()
    snapshot = table.compact(full=False)

    assert snapshot is not None
    assert table.inspect.files().num_rows == 1
    assert content(table) == [f"a {n} 10" for n in range(6)]
    assert news(source) == []
    assert table.compact() is None
    assert content(reopened(table)) == content(table)


def test_tasks_of_one_write_may_all_have_rows_of_the_one_bucket() -> None:
    table = appended()
    write_context = table.new_write().begin(commit_user="query")
    messages = []
    for index in range(3):
        task = table.new_write().open_task(write_context, task_index=index)
        task.write(rows(f"+I a {index} 10"))
        messages.append(task.prepare_commit())
    table.new_write().commit(write_context, messages, 1)

    assert content(table) == ["a 0 10", "a 1 10", "a 2 10"]
    table.compact()
    assert content(table) == ["a 0 10", "a 1 10", "a 2 10"]


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        ({"primary_key": ["id"]}, "leave one of them out"),
        ({"options": {"merge-engine": "deduplicate"}}, "leave option merge-engine out"),
        ({"options": {"bucket": "2"}}, "name columns in bucket-key"),
        ({"options": {"bucket-key": "id"}}, "set bucket to a number"),
        ({"options": {"bucket": "2", "bucket-key": "dt"}}, "names the partition column"),
        ({"options": {"bucket": "0", "bucket-key": "id"}}, "at least 1"),
        ({"options": {"log.changelog-mode": "upsert"}}, "use auto or all"),
    ],
)
def test_a_table_that_contradicts_itself_is_not_made(arguments: dict[str, object], remedy: str) -> None:
    given = {"partition_by": ["dt"], **arguments}
    given["options"] = {"write-mode": "append-only", **arguments.get("options", {})}  # type: ignore[dict-item]
    catalog = MemoryCatalog(environment=fake_environment())

    with pytest.raises(InvalidInputError, match=remedy):
        catalog.create_table(NAME, COLUMNS, **given)  # type: ignore[arg-type]

    assert catalog.list_tables() == []


def test_a_table_in_buckets_is_made_and_read_by_bucket_key() -> None:
    table = appended(log=True, bucket="3", bucket_key="id")
    table.append(rows(*(f"+I a {n} 10" for n in range(30))))
    assert len(content(table)) == 30
    assert sorted(polled(table)) == content(table)
    assert sorted(polled(table, startup="full")) == content(table)
