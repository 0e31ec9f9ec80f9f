"""A task's pool, derived from what the scheduler knows: the serialised task and the run's form."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk import DAG, Param

from dynamic_table.operators.compact_table import CompactTableOperator
from dynamic_table.operators.create_tag import CreateTagOperator
from dynamic_table.operators.drop_partitions import DropPartitionsOperator
from dynamic_table.operators.expire_snapshots import ExpireSnapshotsOperator
from dynamic_table.operators.list_tables import ListTablesOperator
from dynamic_table.operators.reprocess_partitions import ReprocessPartitionsOperator
from dynamic_table.policies.pool_policy import mapped_table
from dynamic_table.table_pools import MAINTENANCE_POOL, pools_of
from tests.support.airflow_names import DagSerialization

FORM = "{{ params.table }}"


@pytest.fixture(scope="module")
def tasks() -> dict[str, Any]:
    """Return one task of each kind, as the scheduler has it."""
    with DAG("pools", schedule=None, params={"table": Param("shop.orders")}) as dag:
        CompactTableOperator(task_id="by_name", table="shop.items")
        CompactTableOperator(task_id="by_form", table=FORM)
        CompactTableOperator(task_id="by_other_template", table="{{ var.value.table }}")
        CompactTableOperator(task_id="own_pool", table="shop.items", pool="mine")
        CompactTableOperator.partial(task_id="compact_many").expand(table=["a.b"])
        listed = ListTablesOperator(task_id="list").output
        CompactTableOperator.partial(task_id="compact_listed").expand(table=listed)
        CompactTableOperator.partial(task_id="compact_arguments").expand_kwargs(listed)
        CompactTableOperator.partial(task_id="crossed").expand(table=listed, full=[True, False])
        CompactTableOperator.partial(task_id="compact_buckets", table=FORM).expand(partition=[{"day": "a"}])
        ExpireSnapshotsOperator.partial(task_id="expire_many").expand(table=["a.b"])
        ReprocessPartitionsOperator(task_id="reprocess", table=FORM, partitions=[{"day": "a"}], rows="a:b")
        DropPartitionsOperator(task_id="drop", table=FORM, partitions=[{"day": "a"}])
        CreateTagOperator(task_id="tag", table="shop.items", tag="kept")
        CreateTagOperator.partial(task_id="tag_many", tag="kept").expand(table=["a.b"])
    return {task.task_id: task for task in DagSerialization.from_dict(DagSerialization.to_dict(dag)).tasks}


@pytest.mark.parametrize(
    ("task_id", "form", "pools"),
    [
        ("by_name", {}, ["dynamic_table.shop.items"]),
        ("by_name", {"table": "shop.orders"}, ["dynamic_table.shop.items"]),
        ("by_form", {}, ["dynamic_table.shop.orders"]),
        ("by_form", {"table": "shop.other"}, ["dynamic_table.shop.other"]),
        ("by_form", {"table": 1}, []),
        ("by_other_template", {"table": "shop.other"}, []),
        ("own_pool", {}, []),
        ("compact_many", {"table": "shop.other"}, ["dynamic_table.a.b", MAINTENANCE_POOL]),
        ("compact_listed", {}, ["dynamic_table.told.first", MAINTENANCE_POOL]),
        ("compact_arguments", {}, ["dynamic_table.told.first", MAINTENANCE_POOL]),
        ("crossed", {}, [MAINTENANCE_POOL]),
        ("compact_buckets", {"table": "shop.other"}, ["dynamic_table.shop.other", MAINTENANCE_POOL]),
        ("expire_many", {}, [MAINTENANCE_POOL]),
        ("reprocess", {"table": "shop.other"}, ["dynamic_table.shop.other"]),
        ("drop", {}, ["dynamic_table.shop.orders"]),
        ("tag", {}, []),
        ("tag_many", {}, []),
    ],
)
def test_a_task_that_rewrites_files_belongs_to_the_pool_of_its_table(
    tasks: dict[str, Any], task_id: str, form: dict[str, Any], pools: list[str]
) -> None:
    task = tasks[task_id]
    told = ["told.first"] if task_id == "compact_listed" else [{"table": "told.first"}]

    mapped = mapped_table(task, 0, lambda _: told)

    assert list(pools_of(task, form, {"table": task.dag.params["table"]}, mapped)) == pools


def test_where_the_list_of_tables_can_not_be_seen_the_common_pool_is_left(tasks: dict[str, Any]) -> None:
    """The list is in a custom store, or shorter than before, or nothing is mapped yet."""
    task = tasks["compact_listed"]

    assert mapped_table(task, 0, lambda _: None) is None
    assert mapped_table(task, 1, lambda _: ["a.b"]) is None
    assert mapped_table(task, -1, lambda _: ["a.b"]) is None
