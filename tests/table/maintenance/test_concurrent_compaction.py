"""Large buckets are compacted several at a time; the tests make every bucket count as large."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from storage_lib import CorruptFileError, DynamicTable, InvalidInputError, open_catalog
from storage_lib.file_store.compact import CompactionTask
from storage_lib.table.maintenance import file_maintenance

BUCKETS = 4


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DynamicTable:
    monkeypatch.setattr(file_maintenance, "_SIDE_BY_SIDE_BYTES_MIN", 0)
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
    assert sorted(table.inspect.files()["bucket"].to_pylist()) == list(range(BUCKETS))
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {"id": key, "name": "new"} for key in range(100)
    ]


def test_when_one_bucket_fails_nothing_of_the_others_stays(
    table: DynamicTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(Path(table.location).rglob("*.parquet"))
    compact = table.context.file_store.compact
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
    assert table.inspect.snapshots().num_rows == 2


def test_compactions_of_some_buckets_each_do_not_conflict_and_leave_the_others_alone(table: DynamicTable) -> None:
    shares: list[list[tuple[dict[str, object], int]]] = [[({}, 0), ({}, 2)], [({}, 1)]]
    planned = [table.maintenance.plan_compaction(buckets=share) for share in shares]
    done = [[table.maintenance.run_compaction(task) for task in tasks] for tasks in planned]

    committed = [table.maintenance.commit_compaction([message for message in messages if message]) for messages in done]

    assert [snapshot.id for snapshot in committed if snapshot] == [3, 4]
    runs = Counter(table.inspect.files()["bucket"].to_pylist())
    assert runs == {0: 1, 1: 1, 2: 1, 3: 2}
    assert table.compact(buckets=shares[0]) is None, "nothing is left to be done there"
    assert table.compact() is not None
    assert sorted(table.to_arrow()["name"].to_pylist()) == ["new"] * 100


def test_buckets_are_named_with_their_whole_partition_and_without_another(tmp_path: Path) -> None:
    table = open_catalog(str(tmp_path)).create_table(
        "db.days",
        pa.schema([("day", pa.date32()), ("hour", pa.int32()), ("id", pa.int64())]),
        partition_by=["day", "hour"],
        options={"bucket": "1", "write-only": "true", "bucket-key": "id"},
    )
    for hour in (1, None):
        for _ in range(2):
            table.append(pa.table({"day": ["2024-05-14"], "hour": [hour], "id": [1]}).cast(table.arrow_schema))

    assert table.compact(buckets=[({"day": "2024-05-14", "hour": None}, 0)]) is not None

    assert Counter(table.inspect.files()["partition"].to_pylist()).most_common()[0][1] == 2
    assert table.inspect.files().num_rows == 3
    with pytest.raises(InvalidInputError, match=r"named by \(day, hour\), not by \(day\)"):
        table.compact(buckets=[({"day": "2024-05-14"}, 0)])
    with pytest.raises(InvalidInputError, match="partition or buckets, not both"):
        table.compact(partition={"hour": 1}, buckets=[({"day": "2024-05-14", "hour": 1}, 0)])
    for wrong in (-1, "0", 1.0, True, None):
        with pytest.raises(InvalidInputError, match=rf"table {table.name}: {wrong!r} is not a bucket of a partition"):
            table.compact(buckets=[({"day": "2024-05-14", "hour": 1}, wrong)])  # type: ignore[list-item]
