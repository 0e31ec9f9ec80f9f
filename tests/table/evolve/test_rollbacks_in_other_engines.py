"""Paimon's Java core reads the rows that a rollback or a fast-forward restored, while both engines keep writing."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage_lib.schema.types.row_kind import RowKind
from tests.support.deep_tests import thinned
from tests.support.paimon_core import PaimonCore
from tests.support.rollback_lives import RollbackLife
from tests.support.shared_table import IDENTIFIER, Change, Row, SharedTable, arrow_of

ADD, DELETE = RowKind.INSERT, RowKind.DELETE
COLUMNS = {"k": "INT NOT NULL", "n": "INT"}
SUM = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
TABLES = {
    "latest row": {},
    "sums": SUM,
    "vectors": {"deletion-vectors.enabled": "true"},
    "vectors, lookup": {"deletion-vectors.enabled": "true", "changelog-producer": "lookup"},
    "lookup": {"changelog-producer": "lookup"},
    "lookup, sums": {"changelog-producer": "lookup", **SUM},
    "full compaction": {"changelog-producer": "full-compaction"},
    "input": {"changelog-producer": "input"},
    "dynamic buckets": {"bucket": "-1"},
    "avro": {"file.format": "avro"},
    "bloom filter": {"file-index.bloom-filter.columns": "n"},
    "bloom filter in a file of its own": {
        "file-index.bloom-filter.columns": "n",
        "file-index.in-manifest-threshold": "1 b",
    },
}


def seen_by_both(table: SharedTable) -> list[Row]:
    rows = table.rows_by_us()
    assert table.rows_by_java() == rows
    return rows


def newest(table: SharedTable) -> int:
    latest = table.ours().context.file_store.snapshots.latest_id()
    assert latest is not None
    return latest


@pytest.mark.parametrize("name", TABLES)
def test_a_file_that_java_moved_up_and_a_rollback_moves_down_is_moved_up_again(
    paimon_core: PaimonCore, tmp_path: Path, name: str
) -> None:
    table = SharedTable.made_by_java(paimon_core, tmp_path, COLUMNS, TABLES[name])
    table.append_by_java([(ADD, (key, key)) for key in range(5)])
    appended = newest(table)
    for _ in range(3):
        table.compact_by_java()
        assert seen_by_both(table) == [(key, key) for key in range(5)]
        table.ours().rollback_to(snapshot_id=appended, change_tracking=False)
        assert seen_by_both(table) == [(key, key) for key in range(5)]
    table.append_by_java([(ADD, (7, 7))])
    table.append_by_us([(ADD, (8, 8))])
    table.compact_by_java()
    assert seen_by_both(table) == [(key, key) for key in (*range(5), 7, 8)]


def test_a_branch_that_is_published_moves_down_what_java_moved_up_meanwhile(
    paimon_core: PaimonCore, tmp_path: Path
) -> None:
    table = SharedTable.made_by_us(paimon_core, tmp_path, COLUMNS, {})
    table.append_by_us([(ADD, (1, 1))])
    table.ours().branches.create("b")
    table.compact_by_java()
    branch = table.ours().branches.open("b")
    branch.append(arrow_of(branch, [(ADD, (2, 2))]))
    table.ours().branches.fast_forward("b", change_tracking=False)
    assert seen_by_both(table) == [(1, 1), (2, 2)]
    table.compact_by_java()

    assert seen_by_both(table) == [(1, 1), (2, 2)]


@pytest.mark.parametrize("vectors", ["false", "true"])
def test_what_came_back_outlives_an_expiry_by_java(paimon_core: PaimonCore, tmp_path: Path, vectors: str) -> None:
    table = SharedTable.made_by_java(paimon_core, tmp_path, COLUMNS, {"deletion-vectors.enabled": vectors})
    table.append_by_java([(ADD, (key, key)) for key in range(5)])
    table.compact_by_java()
    table.append_by_java([(ADD, (key, -key)) for key in range(1, 3)])
    rows, written = table.rows_by_java(), newest(table)
    table.ours().overwrite(arrow_of(table.ours(), [(ADD, (9, 9))]), partition={}, change_tracking=False)
    table.ours().rollback_to(snapshot_id=written, change_tracking=False)
    table.append_by_java([(ADD, (7, 7))])

    paimon_core.expire(table.home, IDENTIFIER, retain_max=1)

    assert seen_by_both(table) == [*rows, (7, 7)]
    table.compact_by_java()
    assert seen_by_both(table) == [*rows, (7, 7)]


@pytest.mark.parametrize(
    ("engine", "appends"),
    [
        ("partial-update", [[(ADD, (2, 5))]]),
        ("deduplicate", [[(ADD, (2, 5)), (DELETE, (3, 3))], [(DELETE, (2, 5))]]),
    ],
    ids=["updated", "deleted"],
)
def test_a_tracked_rollback_tells_of_rows_that_were_only_marked_as_deleted(
    paimon_core: PaimonCore, tmp_path: Path, engine: str, appends: list[list[Change]]
) -> None:
    options = {"deletion-vectors.enabled": "true", "changelog-producer": "lookup", "merge-engine": engine}
    table = SharedTable.made_by_us(paimon_core, tmp_path, COLUMNS, options)
    table.append_by_us([(ADD, (1, 1)), (ADD, (2, 2)), (ADD, (3, 3))])
    written = newest(table)
    for changes in appends:
        table.append_by_us(changes)

    table.ours().rollback_to(snapshot_id=written, change_tracking=True)

    assert seen_by_both(table) == table.rows_of_stream() == [(1, 1), (2, 2), (3, 3)]


# The first four seeds lost rows when a rollback restored every file unchanged.
@pytest.mark.parametrize("seed", thinned([8, 30, 33, 41, *range(100, 112)], keep=4))
def test_two_engines_and_a_model_agree_on_random_lives_with_rollbacks(
    paimon_core: PaimonCore, tmp_path: Path, seed: int
) -> None:
    RollbackLife(paimon_core, tmp_path, seed).run()
