"""The operators that look after a table's history, on real tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from dynamic_table.operators.create_tag import CreateTagOperator
from dynamic_table.operators.drop_table import DropTableOperator
from dynamic_table.operators.list_tables_in_need import ListTablesInNeedOperator
from dynamic_table.operators.remove_orphan_files import RemoveOrphanFilesOperator
from dynamic_table.operators.rollback_table import RollbackTableOperator
from storage_lib import open_catalog
from storage_lib.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from tests.support.task_context import DictStore, announced, task_context

if TYPE_CHECKING:
    from storage_lib import DynamicTable

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


@pytest.fixture
def orders(warehouse: Path) -> DynamicTable:
    """A table with two commits: 1 is "a", then "b"."""
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
