"""Rows computed from the table's own rows: refused if the table has changed since, or written under the lease."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.errors import PySparkException

from storage_lib import CommitConflictError, InvalidInputError
from storage_lib.spark import read, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = pytest.mark.spark


def raised(spark: SparkSession, table: DynamicTable, snapshot_id: int) -> DataFrame:
    return read(spark, table, snapshot_id=snapshot_id).selectExpr("id", "v", "n + 1 AS n")


def numbers(table: DynamicTable) -> list[int]:
    found: list[int] = table.to_arrow(columns=["n"]).column("n").to_pylist()
    return sorted(found)


def rows(n: int) -> pa.Table:
    return pa.table({"id": [1], "v": ["a"], "n": pa.array([n], pa.int32())})


def test_a_change_of_an_older_snapshot_is_refused(spark: SparkSession, make_table: Callable[..., DynamicTable]) -> None:
    table = make_table()
    table.append(rows(1))

    write(raised(spark, table, 1), table, based_on=1)
    with pytest.raises(CommitConflictError, match="snapshot 2 changed rows after snapshot 1"):
        write(raised(spark, table, 1), table, based_on=1)

    assert numbers(table) == [2]
    assert table.inspect.lease_holder() is None


def test_rows_may_be_computed_within_the_lease(spark: SparkSession, make_table: Callable[..., DynamicTable]) -> None:
    table = make_table()
    table.append(rows(1))
    write_context = table.new_write().begin(commit_user="job")

    snapshot = write(raised(spark, table, write_context.base_snapshot_id or 0), table, write_context=write_context)

    assert snapshot is not None
    assert snapshot.commit_user == "job"
    assert numbers(table) == [2]
    assert table.inspect.lease_holder() is None


def test_a_lease_is_released_if_its_rows_cannot_be_computed(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    table = make_table()
    table.append(rows(1))
    write_context = table.new_write().begin(commit_user="job")
    broken = read(spark, table).selectExpr("id", "v", "CAST(raise_error('broken') AS INT) AS n")

    with pytest.raises(PySparkException, match="broken"):
        write(broken, table, write_context=write_context)

    assert table.inspect.lease_holder() is None
    assert numbers(table) == [1]


def test_an_overwrite_is_based_on_nothing(spark: SparkSession, make_table: Callable[..., DynamicTable]) -> None:
    table = make_table()
    table.append(rows(1))

    with pytest.raises(InvalidInputError, match="for appends"):
        write(raised(spark, table, 1), table, mode="overwrite", based_on=1)
