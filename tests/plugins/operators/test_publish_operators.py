"""Write, audit, publish: rows stay on a branch until they pass validation, then the table shows them atomically."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest

from dynamic_table.operators.create_branch import CreateBranchOperator
from dynamic_table.operators.publish_branch import PublishBranchOperator
from dynamic_table.operators.reprocess_partitions import ReprocessPartitionsOperator
from dynamic_table.operators.validate_table import DataQualityError, ValidateTableOperator
from storage_lib import DynamicTable, open_catalog
from storage_lib.errors import AlreadyExistsError, CommitOutcomeUnknownError, InvalidInputError, NotFoundError
from tests.support.task_context import DictStore, announced, task_context

if TYPE_CHECKING:
    from collections.abc import Mapping

TABLE, BRANCH = "shop.orders", "audit"
COLUMNS = pa.schema([pa.field("day", pa.string(), nullable=False), pa.field("id", pa.int64(), nullable=False)])
NO_NEGATIVE_ID = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "id", "min_value": 0}}

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Great Expectations imports deprecated names


@pytest.fixture
def orders(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> DynamicTable:
    """Create a table with one row on day a, and a row callable."""
    monkeypatch.setitem(sys.modules, "rows_for_tests", cast("Any", SimpleNamespace(of_day=of_day)))
    table = open_catalog(str(warehouse), {"log.system": "none"}).create_table(
        TABLE, COLUMNS, primary_key=["day", "id"], partition_by=["day"]
    )
    table.append(pa.table({"day": ["a"], "id": [1]}, schema=COLUMNS))
    return table


def of_day(partition: Mapping[str, str], ids: list[int]) -> pa.Table:
    return pa.table({"day": [partition["day"]] * len(ids), "id": ids}, schema=COLUMNS)


def create(store: DictStore | None = None) -> dict[str, Any]:
    return run(CreateBranchOperator(task_id="create", table=TABLE, branch=BRANCH), store)[0]


def write(ids: list[int]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    source = {"rows": "rows_for_tests:of_day", "rows_kwargs": {"ids": ids}}
    task = ReprocessPartitionsOperator(
        task_id="write", table=TABLE, branch=BRANCH, partitions=[{"day": "b"}], **cast("Any", source)
    )
    return run(task)


def audit() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    return run(ValidateTableOperator(task_id="audit", table=TABLE, branch=BRANCH, expectations=[NO_NEGATIVE_ID]))


def publish(store: DictStore | None = None, **named: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    return run(PublishBranchOperator(task_id="publish", table=TABLE, branch=BRANCH, **named), store)


def run(task: Any, store: DictStore | None = None) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    context = task_context(task, store=store)
    return task.execute(context), announced(context)


def ids(table: DynamicTable) -> list[int]:
    return sorted(table.to_arrow()["id"].to_pylist())


def test_rows_that_are_as_expected_are_published_at_once_and_the_branch_is_gone(orders: DynamicTable) -> None:
    made = create()
    _, written = write([2, 3])
    before = ids(orders)
    audited, checked = audit()
    published, events = publish()

    assert (made["branch"], made["version"], before) == (BRANCH, 1, [1])
    assert audited["rows"] == 3
    assert {event["uri"] for event in (*written, *checked)} == {"dynamic-table://shop/orders/branch"}
    assert (ids(orders), orders.branches.list()) == ([1, 2, 3], ())
    assert [(event["uri"], event["op"], event["version"]) for event in events] == [
        ("dynamic-table://shop/orders", "publish", published["version"])
    ]


def test_rows_that_are_not_as_expected_stay_on_their_branch_for_inspection(orders: DynamicTable) -> None:
    create()
    write([-2])

    with pytest.raises(DataQualityError, match=r"shop\.orders\$branch_audit at snapshot 2 .*\n.*for example -2"):
        audit()
    assert ids(orders) == [1]
    assert ids(orders.branches.open(BRANCH)) == [-2, 1]


def test_a_table_that_has_moved_on_is_not_undone_by_a_branch(orders: DynamicTable) -> None:
    store = DictStore()
    create(store)
    write([2])
    orders.append(pa.table({"day": ["a"], "id": [9]}, schema=COLUMNS))

    with pytest.raises(InvalidInputError, match="has changed since branch 'audit'"):
        publish()
    assert ids(orders) == [1, 9]
    create(store)
    write([2])
    publish()
    assert ids(orders) == [1, 2, 9]


def test_a_branch_of_somebody_else_is_not_replaced(orders: DynamicTable) -> None:
    orders.branches.create(BRANCH)

    with pytest.raises(AlreadyExistsError):
        create()
    assert orders.branches.list() == (BRANCH,)


def test_a_publication_whose_answer_was_lost_is_found_although_the_branch_is_gone(
    orders: DynamicTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    create()
    write([2])
    store = DictStore()
    kind = type(orders.branches)
    whole = kind.delete

    def delete(branches: Any, name: str) -> None:
        whole(branches, name)
        message = "nobody knows"
        raise CommitOutcomeUnknownError(message)

    monkeypatch.setattr(kind, "delete", delete)
    with pytest.raises(CommitOutcomeUnknownError):
        publish(store)
    monkeypatch.setattr(kind, "delete", whole)

    result, _ = publish(store)

    assert result["version"] == orders.context.file_store.snapshots.latest_id()
    assert ids(orders) == [1, 2]


def test_a_branch_may_be_kept_and_one_that_is_not_there_is_told(orders: DynamicTable) -> None:
    create()
    publish(keep_branch="True")

    assert orders.branches.list() == (BRANCH,)
    orders.branches.delete(BRANCH)
    for step in (publish, audit, lambda: write([1])):
        with pytest.raises(NotFoundError, match="audit"):
            step()
