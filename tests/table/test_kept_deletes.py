"""Deletions that compactions keep (``compaction.keep-deletes``), for rows that arrive in any order."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pyarrow as pa
import pytest

from storage_lib import DynamicTable, InvalidInputError, open_catalog

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("at", pa.int32())])
KEPT = {"sequence.field": "at", "compaction.keep-deletes": "true"}


def table_of(path: Path, options: dict[str, str]) -> DynamicTable:
    return open_catalog(str(path)).create_table("db.t", COLUMNS, primary_key=["id"], options=options)


def put(table: DynamicTable, kind: str, name: str | None, at: int) -> None:
    table.append(
        [{"id": 1, "name": name, "at": at, "_row_kind": kind}, {"id": 2, "name": "z", "at": 1, "_row_kind": "+I"}]
    )
    table.compact()


@pytest.mark.parametrize(
    ("options", "left"), [(KEPT, ["z"]), ({"sequence.field": "at"}, ["a", "z"])], ids=["kept", "dropped"]
)
def test_a_late_row_stays_deleted_only_if_the_deletion_is_kept(
    tmp_path: Path, options: dict[str, str], left: list[str]
) -> None:
    table = table_of(tmp_path, options)
    put(table, "-D", None, 5)
    stream = table.stream()
    stream.poll()

    put(table, "+I", "a", 3)

    assert sorted(table.to_arrow()["name"].to_pylist()) == left
    assert table.count() == len(left)
    seen = stream.poll()
    assert (0 if seen is None else seen.num_rows) == len(left) - 1


def test_events_of_a_key_give_one_result_in_every_order_with_a_compaction_after_each(tmp_path: Path) -> None:
    events = [("+I", "a", 1), ("-D", None, 2), ("+I", "b", 3), ("-D", None, 4)]
    for number, order in enumerate(permutations(events[1:])):
        table = table_of(tmp_path / f"deleted-{number}", KEPT)
        for event in order:
            put(table, *event)
        assert table.to_arrow()["name"].to_pylist() == ["z"], order
    for number, order in enumerate(permutations(events[:3])):
        table = table_of(tmp_path / f"there-{number}", KEPT)
        for event in order:
            put(table, *event)
        assert sorted(table.to_arrow()["name"].to_pylist()) == ["b", "z"], order


def test_a_bucket_of_kept_deletions_is_not_rewritten_again(tmp_path: Path) -> None:
    table = table_of(tmp_path, KEPT)
    put(table, "-D", None, 5)

    assert table.compact() is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sequence.field": ""}, "sequence.field"),
        ({"merge-engine": "partial-update"}, "deduplicate"),
        ({"deletion-vectors.enabled": "true"}, "deletion vectors"),
        ({"changelog-producer": "lookup"}, "changelog-producer"),
    ],
)
def test_keeping_deletions_is_refused_where_they_would_not_be_seen(
    tmp_path: Path, options: dict[str, str], words: str
) -> None:
    with pytest.raises(InvalidInputError, match=words):
        table_of(tmp_path, {key: value for key, value in {**KEPT, **options}.items() if value})
