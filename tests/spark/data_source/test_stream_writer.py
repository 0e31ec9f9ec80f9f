"""A new query's first micro-batches: they begin where the table ends, and each is committed once.

The checkpoints are written here as Spark writes them, so no session is needed.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from storage_lib import CommitConflictError, DynamicTable, open_catalog
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.spark.data_source.batch_sources import offset_of
from storage_lib.spark.data_source.stream_writer import TableStreamWriter
from storage_lib.table.protocol.source_offsets import SourceRange

TOPIC = "orders"


def at(offset: int) -> LogOffsets:
    return LogOffsets({0: offset})


def table_with(home: Path, offset: int) -> DynamicTable:
    """Return a table that contains the topic up to an offset."""
    table = open_catalog(home / "warehouse").create_table("db.t", "k INT", primary_key=["k"])
    source = SourceRange(source=TOPIC, start=None, end=at(offset))
    table.append(pa.table({"k": pa.array([1], pa.int32())}), source=source)
    return table


def checkpoint_with(home: Path, *ends: int) -> Path:
    """Write the checkpoint of a query whose batches have read the topic up to ``ends``."""
    checkpoint = home / "checkpoint"
    (checkpoint / "offsets").mkdir(parents=True)
    for batch, end in enumerate(ends):
        (checkpoint / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{json.dumps(offset_of(TOPIC, at(end)))}")
    return checkpoint


@pytest.mark.parametrize("begun", [5, 15])
def test_a_new_query_that_starts_elsewhere_than_the_table_ends_is_refused(tmp_path: Path, begun: int) -> None:
    table = table_with(tmp_path, 10)
    writer = TableStreamWriter(table.address, "query", str(checkpoint_with(tmp_path, begun)), None)

    with pytest.raises(CommitConflictError, match=f"source '{TOPIC}'"):
        writer.commit([], 0)

    assert table.inspect.source_offsets(TOPIC) == at(10)


def test_a_new_query_that_continues_where_the_table_ends_commits_its_first_records(tmp_path: Path) -> None:
    table = table_with(tmp_path, 10)
    writer = TableStreamWriter(table.address, "query", str(checkpoint_with(tmp_path, 10, 12)), None)

    writer.commit([], 0)
    before = table.inspect.latest_snapshot_id()
    writer.commit([], 1)
    writer.commit([], 1)

    assert table.inspect.latest_snapshot_id() == (before or 0) + 1
    assert table.inspect.source_offsets(TOPIC) == at(12)
