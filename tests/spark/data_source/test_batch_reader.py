"""A batch read as Spark plans and runs it, without Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")


from storage_lib.catalog.table_cache import key_of
from storage_lib.spark.data_source import batch_reader
from storage_lib.spark.data_source.batch_reader import FilteringBatchReader, SplitPartition, TableBatchReader
from storage_lib.spark.types.spark_schema import struct_of
from storage_lib.spark.versions import filter_classes as spark

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable


@pytest.fixture
def table(make_table: Callable[..., DynamicTable]) -> DynamicTable:
    """Create a table of three partitions with one row each."""
    columns = pa.schema([pa.field("day", pa.string(), nullable=False), pa.field("id", pa.int64(), nullable=False)])
    table = make_table(columns=columns, primary_key=("day", "id"), partition_by=("day",))
    table.append(pa.table({"day": ["a", "b", "c"], "id": [1, 2, 3]}))
    return table


def reader_of(table: DynamicTable) -> FilteringBatchReader:
    return FilteringBatchReader(key_of(table), struct_of(table.schema))


def ids_of(reader: TableBatchReader) -> list[list[int]]:
    """Return the ids that each task reads."""
    return [
        [key for batch in reader.read(partition) for key in batch.column("id").to_pylist()]
        for partition in reader.partitions()
    ]


def test_small_splits_share_a_task_until_it_is_full(table: DynamicTable, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [sorted(ids) for ids in ids_of(reader_of(table))] == [[1, 2, 3]]

    monkeypatch.setattr(batch_reader, "_TASK_BYTES", 2 * batch_reader._SPLIT_OVERHEAD_BYTES)

    assert sorted(len(ids) for ids in ids_of(reader_of(table))) == [1, 2]


def test_spark_is_asked_only_for_what_could_not_be_answered(table: DynamicTable) -> None:
    reader = reader_of(table)
    left = spark.StringContains(("day",), "x")

    assert list(reader.pushFilters([spark.GreaterThan(("id",), 1), left])) == [left]
    assert [sorted(ids) for ids in ids_of(reader)] == [[2, 3]]


def test_neither_an_empty_batch_nor_an_empty_partition_is_handed_to_spark(table: DynamicTable) -> None:
    reader = reader_of(table)
    partitions = reader.partitions()
    assert list(reader.pushFilters([spark.GreaterThan(("id",), 5)])) == []

    assert [list(reader.read(partition)) for partition in partitions] == [[]]
    assert list(reader.read(SplitPartition(None))) == []


def test_tasks_share_a_bucket_whose_files_overlap(
    make_table: Callable[..., DynamicTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.int32())])
    table = make_table(columns=columns, primary_key=("id",), **{"bucket": "1", "write-only": "true"})
    for version in range(3):
        table.append(pa.table({"id": range(100_000), "v": [version] * 100_000}))
    monkeypatch.setattr(batch_reader, "_TASK_BYTES", 1)
    monkeypatch.setattr(batch_reader, "_MERGE_TASK_BYTES", table.new_read().plan().size_bytes // 3)

    reader = reader_of(table)
    tasks = [
        [row for batch in reader.read(partition) for row in batch.to_pylist()] for partition in reader.partitions()
    ]

    assert len(tasks) > 1
    assert sorted(row["id"] for rows in tasks for row in rows) == list(range(100_000))
    assert {row["v"] for rows in tasks for row in rows} == {2}
