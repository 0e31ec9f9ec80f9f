"""Large buckets are compacted several at a time; tests make every bucket large."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from storage_lib import CorruptFileError, DynamicTable, open_catalog
from storage_lib.file_store.compact import CompactionTask
from storage_lib.table import table_care

BUCKETS = 4


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DynamicTable:
    monkeypatch.setattr(table_care, "_SIDE_BY_SIDE_BYTES_MIN", 0)
    table = open_catalog(str(tmp_path)).create_table(
        "db.t",
        pa.schema([("id", pa.int64()), ("name", pa.string())]),
        primary_key=["id"],
        options={"bucket": str(BUCKETS), "write-only": "true"},
    )
    for name in ("old", "new"):
        table.append(pa.table({"id": range(100), "name": [name] * 100}))
    return table


def test_all_buckets_become_one_run_in_one_commit(table: DynamicTable) -> None:
    snapshot = table.compact()

    assert snapshot is not None
    assert snapshot.id == 3
    assert sorted(table.files()["bucket"].to_pylist()) == list(range(BUCKETS))
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {"id": key, "name": "new"} for key in range(100)
    ]


def test_when_one_bucket_fails_nothing_of_the_others_stays(
    table: DynamicTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(Path(table.location).rglob("*.parquet"))
    compact = table.file_store.compact
    run = compact.run

    def broken(task: CompactionTask) -> Any:
        if task.bucket == 1:
            message = "a file is broken"
            raise CorruptFileError(message)
        return run(task)

    monkeypatch.setattr(compact, "run", broken)

    with pytest.raises(CorruptFileError, match="a file is broken"):
        table.compact()

    assert sorted(Path(table.location).rglob("*.parquet")) == before
    assert table.snapshots().num_rows == 2
