"""Partitions of a real table: those before a value, and the rows of a single one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from dynamic_table.arguments.partition_listing import partition_filter, partitions_before, refuse_missing
from storage_lib import open_catalog
from storage_lib.errors import NotFoundError

if TYPE_CHECKING:
    from pathlib import Path

    from storage_lib import DynamicTable


@pytest.fixture
def sales(tmp_path: Path) -> DynamicTable:
    """Create a table partitioned by a number and by a nullable text; ``v`` numbers the rows."""
    rows = pa.table({"week": [9, 9, 10, 10], "shop": ["a", None, "a", "b"], "v": [0, 1, 2, 3]})
    catalog = open_catalog(str(tmp_path), {"log.system": "none"})
    table = catalog.create_table("db.sales", rows.schema, partition_by=["week", "shop"])
    table.append(rows)
    return table


def test_partitions_are_compared_as_their_columns_type_not_as_text(sales: DynamicTable) -> None:
    assert [one["week"] for one in partitions_before(sales, "week", "10")] == ["9", "9"]
    assert partitions_before(sales, "week", "9") == []


def test_a_partition_of_null_stays_one_of_null(sales: DynamicTable) -> None:
    found = partitions_before(sales, "week", "10")

    assert {one["shop"] for one in found} == {"a", None}
    sales.maintenance.drop_partitions(found)
    assert sorted(sales.to_arrow()["v"].to_pylist()) == [2, 3]


def test_a_partition_that_is_not_there_is_named(sales: DynamicTable) -> None:
    refuse_missing(sales, [{"week": "9", "shop": None}, {"week": "10"}])

    with pytest.raises(NotFoundError, match=r"db\.sales has no partition week=10/shop=None"):
        refuse_missing(sales, [{"week": "9"}, {"week": "10", "shop": None}])


def test_a_partition_is_told_by_all_its_columns(sales: DynamicTable) -> None:
    of_one = partition_filter(sales, {"week": "10", "shop": "a"})

    assert sales.to_arrow(filter=of_one)["v"].to_pylist() == [2]
