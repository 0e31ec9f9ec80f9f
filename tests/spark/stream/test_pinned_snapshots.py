"""A tag keeps the snapshot of another table that a stream reads, or the stream reports why it can't continue."""

from __future__ import annotations

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from storage_lib.catalog.warehouse.warehouse_catalog import WarehouseCatalog
from storage_lib.errors import InvalidInputError, SnapshotExpiredError, UnavailableError
from storage_lib.spark.stream.pinned_snapshots import Pin, pin
from storage_lib.table.dynamic_table import DynamicTable
from tests.support.fake_environment import fake_environment

STREAM = "table db.sink: the stream of checkpoint /c"
TAG = "stream-5e1f"


@pytest.fixture
def other() -> DynamicTable:
    """Create a table of three snapshots of one row."""
    catalog = WarehouseCatalog("memory", environment=fake_environment())
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
    table = catalog.create_table("db.dim", columns, primary_key=("id",), options={"bucket": "1"})
    for value in "abc":
        table.append(pa.table({"id": [1], "v": [value]}))
    return table


def test_an_expiry_keeps_the_rows_of_a_pinned_snapshot(other: DynamicTable) -> None:
    assert pin(STREAM, other, 1, TAG) == Pin(snapshot_id=1, tag=TAG)
    other.compact(full=True)
    other.maintenance.expire_snapshots(retain_last=1)
    assert pin(STREAM, other, 1, TAG) == Pin(snapshot_id=1, tag=TAG)
    assert other.to_arrow(tag=TAG).to_pylist() == [{"id": 1, "v": "a"}]


def test_a_pinned_snapshot_that_has_expired_is_an_error_with_the_remedy(other: DynamicTable) -> None:
    other.maintenance.expire_snapshots(retain_last=1)
    with pytest.raises(SnapshotExpiredError, match=r"reads db\.dim at snapshot 1 .* has expired.* a new checkpoint"):
        pin(STREAM, other, 1, TAG)
    assert other.tags.list() == ()


def test_a_tag_of_another_snapshot_is_refused(other: DynamicTable) -> None:
    other.tags.create(TAG, 2)
    with pytest.raises(InvalidInputError, match=f"tag '{TAG}' is of snapshot 2"):
        pin(STREAM, other, 1, TAG)


def test_an_empty_table_needs_no_tag(other: DynamicTable) -> None:
    assert pin(STREAM, other, 0, TAG) == Pin(snapshot_id=0)
    assert other.tags.list() == ()


def test_a_table_that_can_not_be_written_is_read_with_a_warning(
    other: DynamicTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        message = "read-only"
        raise UnavailableError(message)

    monkeypatch.setattr(other.context.file_store.tags, "create", refuse)
    with pytest.warns(RuntimeWarning, match="can't be tagged: .*read-only"):
        assert pin(STREAM, other, 1, TAG) == Pin(snapshot_id=1)
