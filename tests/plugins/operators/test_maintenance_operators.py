"""The operators that maintain a table's history, on real tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from dynamic_table.operators.compact_table import CompactTableOperator
from dynamic_table.operators.create_branch import CreateBranchOperator
from dynamic_table.operators.create_tag import CreateTagOperator
from dynamic_table.operators.drop_table import DropTableOperator
from dynamic_table.operators.expire_snapshots import ExpireSnapshotsOperator
from dynamic_table.operators.list_compactions import ListCompactionsOperator
from dynamic_table.operators.list_tables_in_need import ListTablesInNeedOperator
from dynamic_table.operators.remove_orphan_files import RemoveOrphanFilesOperator
from dynamic_table.operators.rollback_table import RollbackTableOperator
from storage_lib import open_catalog
from storage_lib.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from storage_lib.file_store.compact import CompactionTask, FileStoreCompact
from tests.support.task_context import DictStore, announced, task_context
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from storage_lib import DynamicTable

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


@pytest.fixture
def orders(warehouse: Path) -> DynamicTable:
    """Create a table with two commits: 1 is "a", then "b"."""
    catalog = open_catalog(str(warehouse))
    table = catalog.create_table("shop.orders", COLUMNS, primary_key=["id"], options={"log.system": "none"})
    for value in "ab":
        table.append(pa.table({"id": [1], "v": [value]}))
    return table


def values(table: DynamicTable) -> list[str]:
    found: list[str] = table.to_arrow()["v"].to_pylist()
    return found


def test_a_rollback_shows_the_older_content_in_a_new_snapshot_and_announces_it(orders: DynamicTable) -> None:
    context = task_context(task := RollbackTableOperator(task_id="back", table="shop.orders", snapshot_id="1"))

    result = task.execute(context)

    assert values(orders) == ["a"]
    assert result == {"table": "shop.orders", "version": 3, "op": "rollback", "partitions": [], "to": 1}
    assert [(event["op"], event["version"]) for event in announced(context)] == [("rollback", 3)]
    assert json.loads(json.dumps(result)) == result
    again = task_context(task := RollbackTableOperator(task_id="back", table="shop.orders", snapshot_id=1))
    assert task.execute(again)["version"] is None
    assert announced(again) == []


def test_a_try_after_a_lost_answer_does_not_go_back_again_though_the_table_went_on(orders: DynamicTable) -> None:
    task = RollbackTableOperator(task_id="back", table="shop.orders", snapshot_id=1)
    store = DictStore()
    task.execute(task_context(task, store=store))
    orders.append(pa.table({"id": [1], "v": ["c"]}))

    assert task.execute(task_context(task, store=store))["version"] == 3
    assert values(orders) == ["c"]


def test_a_rollback_goes_to_a_tag_too(orders: DynamicTable) -> None:
    orders.tags.create("good", 1)

    RollbackTableOperator.execute(
        task := RollbackTableOperator(task_id="back", table="shop.orders", tag="good"), task_context(task)
    )

    assert values(orders) == ["a"]


@pytest.mark.parametrize(
    "arguments", [{}, {"snapshot_id": None, "tag": "None"}, {"snapshot_id": 1, "tag": "x"}, {"snapshot_id": "one"}]
)
def test_a_rollback_that_does_not_say_one_place_is_refused(orders: DynamicTable, arguments: dict[str, Any]) -> None:
    task = RollbackTableOperator(task_id="back", table="shop.orders", **arguments)

    with pytest.raises(InvalidInputError, match="snapshot_id"):
        task.execute(task_context(task))

    assert values(orders) == ["b"]


def test_a_tag_keeps_the_newest_snapshot_under_its_name(orders: DynamicTable) -> None:
    task = CreateTagOperator(task_id="tag", table="shop.orders", tag="closed", time_retained="7 d")

    result = task.execute(task_context(task))

    assert result == {"table": "shop.orders", "op": "create_tag", "tag": "closed", "version": 2}
    [tag] = orders.tags.list()
    assert (tag.name, tag.snapshot.id, tag.time_retained_ms) == ("closed", 2, 7 * 86_400_000)


def test_a_try_after_a_lost_answer_finds_the_tag_it_made_though_the_table_went_on(orders: DynamicTable) -> None:
    task = CreateTagOperator(task_id="tag", table="shop.orders", tag="closed")
    store = DictStore()
    task.execute(task_context(task, store=store))
    orders.append(pa.table({"id": [2], "v": ["c"]}))

    assert task.execute(task_context(task, store=store))["version"] == 2
    with pytest.raises(AlreadyExistsError, match="closed"):
        task.execute(task_context(task, store=store, max_tries=11))
    with pytest.raises(AlreadyExistsError, match="closed"):
        CreateTagOperator.execute(
            other := CreateTagOperator(task_id="tag", table="shop.orders", tag="closed", snapshot_id=1),
            task_context(other),
        )
    assert [(tag.name, tag.snapshot.id) for tag in orders.tags.list()] == [("closed", 2)]


def test_a_tag_without_a_name_is_refused(orders: DynamicTable) -> None:
    task = CreateTagOperator(task_id="tag", table="shop.orders", tag="None")

    with pytest.raises(InvalidInputError, match="tag"):
        task.execute(task_context(task))

    assert orders.tags.list() == ()


def test_orphans_are_listed_or_removed(orders: DynamicTable, warehouse: Path) -> None:
    [data_file, *_] = sorted(warehouse.rglob("data-*.parquet"))
    orphan = data_file.with_name("data-00000000-0000-0000-0000-000000000000-0.parquet")
    orphan.write_bytes(b"left behind")

    def run(**arguments: Any) -> dict[str, Any]:
        task = RemoveOrphanFilesOperator(task_id="clean", table="shop.orders", **arguments)
        return task.execute(task_context(task))

    assert run()["files"] == 0, "it is younger than a day"
    listed = run(older_than_hours="0", list_only="True")
    assert (listed["files"], listed["bytes"], listed["list_only"], orphan.exists()) == (1, 11, True, True)
    removed = run(older_than_hours=0)
    assert (removed["files"], removed["list_only"], orphan.exists()) == (1, False, False)
    assert values(orders) == ["b"]


def test_a_table_is_dropped_once_and_its_absence_is_fine_or_not(orders: DynamicTable, warehouse: Path) -> None:
    def run(**arguments: Any) -> dict[str, Any]:
        task = DropTableOperator(task_id="drop", table=orders.name, **arguments)
        return task.execute(task_context(task))

    assert run() == {"table": "shop.orders", "op": "drop_table", "existed": True}
    assert open_catalog(str(warehouse)).list_tables() == []
    assert run()["existed"] is False
    with pytest.raises(NotFoundError, match=r"shop\.orders"):
        run(if_exists="false")


def test_tags_and_branches_whose_time_has_passed_go_with_the_snapshots(orders: DynamicTable) -> None:
    orders.tags.create("short", 1, time_retained="1 ms")
    orders.tags.create("kept", 2, time_retained="1 d")
    branch = task_context(
        task := CreateBranchOperator(task_id="branch", table="shop.orders", branch="audit", time_retained="1 ms")
    )
    task.execute(branch)
    wait_until(lambda: orders.tags.expire(dry_run=True) and orders.branches.expire(dry_run=True))
    listed = ListTablesInNeedOperator(task_id="list", retain_last=10)
    expire = ExpireSnapshotsOperator(task_id="expire", table="shop.orders", retain_last=10)

    assert listed.execute(task_context(listed)) == ["shop.orders"]
    assert expire.execute(task_context(expire)) == {
        "table": "shop.orders", "op": "expire", "snapshots": 0, "data_files": 0, "tags": ["short"],
        "branches": ["audit"],
    }  # fmt: skip
    assert listed.execute(task_context(listed)) == []
    assert [tag.name for tag in orders.tags.list()] == ["kept"]


def test_what_is_due_of_a_large_table_is_divided_among_tasks_the_largest_first(warehouse: Path) -> None:
    catalog = open_catalog(str(warehouse))
    options = {"log.system": "none", "write-only": "true", "bucket": "2"}
    keys = pa.schema([pa.field(name, pa.int64(), nullable=False) for name in ("day", "id")])
    large = catalog.create_table("shop.large", keys, primary_key=["day", "id"], partition_by=["day"], options=options)
    small = catalog.create_table("shop.small", keys, primary_key=["day", "id"], options=options | {"bucket": "1"})
    for _ in range(2):
        large.append(pa.table({"day": [1] * 1000 + [2] * 9000, "id": range(10000)}, schema=keys))
        small.append(pa.table({"day": [1], "id": [1]}, schema=keys))
    broken = catalog.create_table("shop.broken", keys, primary_key=["day", "id"], options=options)
    broken.append(pa.table({"day": [1], "id": [1]}, schema=keys))
    Path(broken.location, "snapshot", "snapshot-1").write_text("{")
    half = large.inspect.health().size_bytes / 2 / 1024**3
    names = ["shop.small", "shop.large", "shop.broken"]

    def listed(**arguments: Any) -> list[dict[str, Any]]:
        task = ListCompactionsOperator(task_id="list", tables=names, full=True, **arguments)
        return task.execute(task_context(task))

    def compacted(arguments: dict[str, Any]) -> dict[str, Any]:
        task = CompactTableOperator(task_id="compact", **arguments)
        return task.execute(task_context(task))

    whole = [{"table": name, "buckets": None} for name in ("shop.large", "shop.small", "shop.broken")]
    assert listed() == listed(gib_per_task="None") == listed(gib_per_task=1) == whole
    with pytest.raises(InvalidInputError, match="gib_per_task is 0"):
        listed(gib_per_task=0)
    shares = listed(gib_per_task=half)
    assert [one["table"] for one in shares] == ["shop.large", "shop.large", "shop.small", "shop.broken"]
    assert [[place["partition"]["day"] for place in one["buckets"]] for one in shares[:2]] == [["1", "2"]] * 2
    done = [compacted(one) for one in shares[:2]]
    assert [one["version"] for one in done] == [3, 4]
    assert done[0]["partitions"] == [{"day": "1"}, {"day": "2"}]
    assert large.inspect.files().num_rows == 4
    assert [one["table"] for one in listed(gib_per_task=1)] == ["shop.small", "shop.broken"]


def test_a_compaction_is_planned_once(orders: DynamicTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan whose size is reported is the one that is run."""
    planned, plan = [], FileStoreCompact.plan

    def noting(self: FileStoreCompact, *arguments: Any, **options: Any) -> tuple[CompactionTask, ...]:
        planned.append(plan(self, *arguments, **options))
        return planned[-1]

    monkeypatch.setattr(FileStoreCompact, "plan", noting)
    task = CompactTableOperator(task_id="compact", table=orders.name)

    result = task.execute(task_context(task))

    assert [len(tasks) for tasks in planned] == [1]
    assert result["version"] == 3
    assert orders.inspect.files().num_rows == 1


def test_the_buckets_of_a_compaction_are_checked_and_told(orders: DynamicTable) -> None:
    days = [{"partition": {"day": f"2024-05-1{day}"}, "buckets": [0, 3]} for day in range(5)]

    def task(buckets: Any, **more: Any) -> CompactTableOperator:
        return CompactTableOperator(task_id="compact", table=orders.name, buckets=buckets, **more)

    assert task(None).label == orders.name
    assert task([{"partition": {}, "buckets": [0, 3]}]).label == "shop.orders 0, 3"
    assert task(days).label == (
        "shop.orders day=2024-05-10: 0, 3; day=2024-05-11: 0, 3; day=2024-05-12: 0, 3; and 2 more partitions"
    )
    for wrong in ([], [{"buckets": [0]}], [{"partition": {}, "buckets": ["0"]}], "[0, 1]"):
        with pytest.raises(InvalidInputError, match="buckets are a list like"):
            (bad := task(wrong)).execute(task_context(bad))
    with pytest.raises(InvalidInputError, match="named by"):
        (bad := task(days[:1])).execute(task_context(bad))


def test_only_tables_in_need_are_listed_the_largest_first(warehouse: Path) -> None:
    catalog = open_catalog(str(warehouse))
    options = {"log.system": "none", "write-only": "true", "bucket": "1"}

    def make(name: str, commits: int, rows: int) -> DynamicTable:
        table = catalog.create_table(f"shop.{name}", COLUMNS, primary_key=["id"], options=options)
        for _ in range(commits):
            table.append(pa.table({"id": range(rows), "v": ["x"] * rows}))
        return table

    make("fine", 2, 1)
    make("empty", 0, 1)
    make("small", 6, 1)
    make("large", 6, 5000)
    make("snapshots", 7, 2).compact()
    broken = make("broken", 1, 1)
    Path(broken.location, "snapshot", "snapshot-1").write_text("{")

    def listed(**arguments: Any) -> list[str]:
        task = ListTablesInNeedOperator(task_id="list", **arguments)
        return task.execute(task_context(task))

    assert listed(retain_last="7") == ["shop.large", "shop.small", "shop.snapshots", "shop.broken"]
    assert listed(retain_last=8) == ["shop.large", "shop.small", "shop.broken"]
    assert listed(tables=["shop.fine", "shop.small"]) == ["shop.small"]
    assert listed(tables=["shop.fine", "shop.empty"], full="true") == ["shop.fine"]
    with pytest.raises(InvalidInputError, match="retain_last"):
        listed(retain_last=0)
