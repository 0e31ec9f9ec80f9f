"""The output of a memtable: sorted, one version per key, sequence numbers by arrival."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.data_file.key_value import KeyValueSchema
from storage_lib.file_store.merge_tree.memtable import Memtable
from storage_lib.schema.types.row_kind import RowKind
from tests.support.bucket_on_disk import BucketOnDisk, row_kinds, schema_of

INSERT, DELETE = RowKind.INSERT, RowKind.DELETE


def test_the_newest_version_of_each_key_comes_out_in_key_order(bucket: BucketOnDisk) -> None:
    memtable = Memtable(bucket.key_value)
    memtable.put(bucket.batch([(2, "b"), (1, "a"), (2, "c")]), row_kinds([INSERT] * 3), 10)
    memtable.put(bucket.batch([(0, "z"), (1, None)]), row_kinds([INSERT, DELETE]), 13)

    (drained,) = memtable.drain()

    assert [tuple(row.values()) for row in drained.to_pylist()] == [(13, 0, 0, "z"), (14, 3, 1, None), (12, 0, 2, "c")]
    assert memtable.drain() == []
    assert memtable.size_bytes == 0


@pytest.mark.parametrize("row_count", [4, 100], ids=["a share of the batch", "a few rows of a large batch"])
def test_selected_rows_alone_are_taken_in_the_order_selected(bucket: BucketOnDisk, row_count: int) -> None:
    memtable = Memtable(bucket.key_value)
    rows = bucket.batch([(1, f"v{index}") for index in range(row_count)])

    taken = memtable.put(rows, row_kinds([INSERT] * row_count), 5, np.array([3, 1], dtype=np.int64))

    (drained,) = memtable.drain()
    assert taken == 2
    assert [tuple(row.values()) for row in drained.to_pylist()] == [(6, 0, 1, "v1")]


def test_a_few_rows_of_a_large_batch_do_not_hold_it_in_memory(bucket: BucketOnDisk) -> None:
    memtable = Memtable(bucket.key_value)
    before = pa.total_allocated_bytes()
    rows = bucket.batch([(index, "x" * 100) for index in range(100_000)])
    kinds = row_kinds([INSERT] * 100_000)

    memtable.put(rows, kinds, 0, np.array([7], dtype=np.int64))
    del rows, kinds

    assert pa.total_allocated_bytes() - before < 10_000
    assert memtable.size_bytes < 1_000


@pytest.mark.parametrize("column", ["id", "name"])
def test_a_null_where_none_may_be_is_refused_by_name_and_nothing_is_taken(column: str) -> None:
    memtable = Memtable(KeyValueSchema(schema=schema_of("id BIGINT; name STRING NOT NULL", ["id"])))
    good: dict[str, list[object]] = {"id": [1, 2], "name": ["a", "b"]}
    rows = pa.RecordBatch.from_pydict({**good, column: [None, good[column][1]]})

    with pytest.raises(InvalidInputError, match=rf"'{column}' is NOT NULL, but 1 of 2 rows"):
        memtable.put(rows, row_kinds([INSERT] * 2), 0)

    assert memtable.drain() == []
