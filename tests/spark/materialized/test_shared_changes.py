"""Changes that several materialized tables read are read once, and never taken for those of other snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from storage_lib import AddColumn
from storage_lib.materialized.plan.refresh_result import RefreshWork
from storage_lib.materialized.sources import shared_changes
from storage_lib.materialized.sources.shared_changes import ChangedRows, SharedChanges
from storage_lib.spark import create_materialized_table, refresh
from tests.support.materialized_answers import expected_bag, stored_bag
from tests.support.paimon_rollback import roll_back_as_paimon_does

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from storage_lib.catalog.catalog import Catalog
    from storage_lib.table.dynamic_table import DynamicTable


@pytest.fixture
def orders(catalog: Catalog) -> DynamicTable:
    """Create a table whose rows 1 and 2 are changed by the second snapshot."""
    columns = {"id": "INT NOT NULL", "item": "STRING", "amount": "INT"}
    table = catalog.create_table("shop.orders", columns, primary_key=["id"])
    table.append([{"id": number, "item": "pen", "amount": number} for number in range(3)])
    table.upsert([{"id": 1, "item": "ink", "amount": 1}, {"id": 2, "item": "pen", "amount": 9}])
    return table


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Return the columns of each reading of files."""
    done: list[tuple[str, ...]] = []
    read = shared_changes._read

    def counted(table: DynamicTable, columns: Sequence[str], before: int, after: int) -> ChangedRows:
        done.append(tuple(columns))
        return read(table, columns, before, after)

    monkeypatch.setattr(shared_changes, "_read", counted)
    return done


def in_python(rows: ChangedRows) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    return tuple(sorted(each.to_pylist(), key=repr) for each in (rows.old, rows.new))  # type: ignore[return-value]


def test_a_second_reader_of_the_same_columns_reads_no_file(orders: DynamicTable, reads: list[tuple[str, ...]]) -> None:
    shared = SharedChanges()

    first = in_python(shared.rows(orders, ["item", "amount"], 1, 2))
    second = in_python(shared.rows(orders, ["amount"], 1, 2))

    assert first == (
        [{"item": "pen", "amount": 1}, {"item": "pen", "amount": 2}],
        [{"item": "ink", "amount": 1}, {"item": "pen", "amount": 9}],
    )
    assert second == ([{"amount": 1}, {"amount": 2}], [{"amount": 1}, {"amount": 9}])
    assert reads == [("item", "amount")]


def test_the_next_changes_are_read_with_the_columns_of_all_readers(
    orders: DynamicTable, reads: list[tuple[str, ...]]
) -> None:
    shared = SharedChanges()
    for columns in (["item"], ["amount"]):
        shared.rows(orders, columns, 1, 2)
    orders.delete("id = 0")

    found = [in_python(shared.rows(orders, columns, 2, 3)) for columns in (["item"], ["amount"])]

    assert found == [([{"item": "pen"}], []), ([{"amount": 0}], [])]
    assert reads == [("item",), ("item", "amount"), ("item", "amount")]


def test_a_snapshot_whose_id_was_used_before_a_rollback_is_another_one(catalog: Catalog, orders: DynamicTable) -> None:
    """Paimon deletes the newer snapshots, and gives their ids to later commits."""
    shared = SharedChanges()
    shared.rows(orders, ["amount"], 1, 2)
    roll_back_as_paimon_does(orders, 1)
    catalog.load_table("shop.orders").upsert([{"id": 0, "item": "cap", "amount": 7}])

    again = shared.rows(catalog.load_table("shop.orders"), ["amount"], 1, 2)

    assert in_python(again) == ([{"amount": 0}], [{"amount": 7}])


@pytest.mark.spark
@pytest.mark.parametrize("further_commits", [0, 1])
def test_a_refresher_that_keeps_its_tables_open_sees_such_a_rollback_of_a_source(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable, further_commits: int
) -> None:
    table = create_materialized_table(
        catalog, "shop.large", "SELECT id, amount FROM orders WHERE amount > 1", spark=spark
    )
    refresh(spark, table)
    orders.upsert([{"id": 7, "item": "cap", "amount": 7}])
    refresh(spark, table)
    roll_back_as_paimon_does(orders, 1)
    other_process = catalog.load_table("shop.orders")
    for number in range(2 + further_commits):
        other_process.upsert([{"id": 8 + number, "item": "cap", "amount": 8}])

    result = refresh(spark, table)

    assert result.mode is RefreshWork.FULL
    assert stored_bag(table) == expected_bag(catalog, catalog.load_table("shop.large"))
    assert result.positions == {"shop.orders": 3 + further_commits}
    other_process.delete("id = 8")
    assert refresh(spark, table).mode is RefreshWork.INCREMENTAL
    assert stored_bag(table) == expected_bag(catalog, catalog.load_table("shop.large"))


def test_a_table_that_was_created_again_is_another_one(catalog: Catalog, orders: DynamicTable) -> None:
    shared = SharedChanges()
    shared.rows(orders, ["amount"], 1, 2)
    catalog.drop_table("shop.orders")
    again = catalog.create_table("shop.orders", {"id": "INT NOT NULL", "amount": "INT"}, primary_key=["id"])
    again.append([{"id": 1, "amount": 1}])
    again.upsert([{"id": 1, "amount": 2}])

    assert in_python(shared.rows(again, ["amount"], 1, 2)) == ([{"amount": 1}], [{"amount": 2}])


def test_rows_of_another_schema_are_read_again(orders: DynamicTable) -> None:
    shared = SharedChanges()
    shared.rows(orders, ["amount"], 1, 2)

    found = shared.rows(orders.alter(AddColumn("note", "STRING")), ["note"], 1, 2)

    assert in_python(found) == ([{"note": None}] * 2, [{"note": None}] * 2)


def test_the_oldest_changes_leave_the_memory_first(orders: DynamicTable, reads: list[tuple[str, ...]]) -> None:
    orders.upsert([{"id": 0, "item": "cap", "amount": 7}])
    size = SharedChanges().rows(orders, ["amount"], 1, 2).size_bytes
    shared = SharedChanges(bytes_max=size)
    reads.clear()

    for before in (1, 1, 2, 2, 1):
        shared.rows(orders, ["amount"], before, before + 1)

    assert len(reads) == 3
