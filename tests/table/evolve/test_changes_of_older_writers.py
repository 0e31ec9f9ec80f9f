"""A table that was opened before its schema changed writes the rows that it replaces with all columns of today."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from storage_lib import (
    CommitConflictError,
    DynamicTable,
    InvalidInputError,
    LeaseLostError,
    MemoryCatalog,
    NotFoundError,
    StreamPosition,
    col,
)
from storage_lib.schema.evolution.schema_changes import AddColumn, AlterType, DropColumn
from tests.support.fake_environment import fake_environment
from tests.support.mortal_process import reopened_in
from tests.support.sleepy_storage import SleepyStorage

COLUMNS = {"id": "INT", "p": "STRING", "v": "INT", "gone": "INT"}
CHANGES = (AddColumn("x", "STRING"), AlterType("v", "BIGINT"), DropColumn("gone"))
ADDED = {"v": 1, "x": "kept"}


def opened_twice(**options: str) -> tuple[DynamicTable, DynamicTable]:
    """Return a table as it was opened before, and after, its schema changed; the first rows have values since then."""
    catalog = MemoryCatalog()
    spelled = {"bucket": "1", **{name.replace("__", ".").replace("_", "-"): text for name, text in options.items()}}
    catalog.create_table("shop.t", COLUMNS, primary_key=["id", "p"], partition_by=["p"], options=spelled)
    old = catalog.load_table("shop.t")
    altered = catalog.load_table("shop.t").alter(*CHANGES)
    altered.append([{"id": 1, "p": "a", **ADDED}, {"id": 2, "p": "b", **ADDED}])
    return old, altered


def changed(table: DynamicTable, act: Callable[[], object]) -> list[tuple[Any, ...]]:
    stream = table.stream(startup="latest")
    act()
    changes = stream.poll()
    assert changes is not None
    return [tuple(row[name] for name in ("_row_kind", "id", "v", "x")) for row in changes.to_pylist()]


ROW = {"id": 1, "p": "a", "v": 5, "gone": 9}
VERBS: dict[str, Callable[[DynamicTable], object]] = {
    "append": lambda table: table.append([ROW]),
    "upsert": lambda table: table.upsert([ROW]),
    "write of an engine": lambda table: written_by_tasks(table, pa.Table.from_pylist([ROW])),
    "tracked overwrite": lambda table: table.overwrite([ROW], partition={"p": "a"}, change_tracking=True),
}


def written_by_tasks(table: DynamicTable, rows: pa.Table) -> None:
    write = table.new_write()
    context = write.begin(commit_user="engine")
    task = write.open_task(context, task_index=0)
    task.write(rows)
    write.commit(context, [task.prepare_commit()], 1)


@pytest.mark.parametrize("verb", VERBS)
def test_a_row_that_an_older_writer_replaces_leaves_the_log_whole(verb: str) -> None:
    old, altered = opened_twice(log__changelog_mode="all")

    changes = changed(altered, lambda: VERBS[verb](old))

    assert changes == [("-U", 1, 1, "kept"), ("+U", 1, 5, None)]
    assert altered.lookup([{"id": 1, "p": "a"}]).to_pylist() == [{"id": 1, "p": "a", "v": 5, "x": None}]


def test_a_key_that_an_older_writer_deletes_leaves_the_log_with_its_whole_row() -> None:
    old, altered = opened_twice()

    assert changed(altered, lambda: old.append([{"_row_kind": "-D", "id": 1, "p": "a"}])) == [("-D", 1, 1, "kept")]


@pytest.mark.parametrize("producer", ["none", "input", "lookup", "full-compaction"])
@pytest.mark.parametrize("log", ["kafka", "none"])
def test_rows_that_an_older_writer_drops_or_rolls_back_reach_streams_whole(producer: str, log: str) -> None:
    old, altered = opened_twice(log__system=log, changelog_producer=producer)
    if producer == "none" == log:
        pytest.skip("streams of such a table see no deletions")
    altered.compact()
    before = altered.inspect.snapshots()["snapshot_id"].to_pylist()[-1]

    def drop() -> None:
        old.maintenance.drop_partitions([{"p": "a"}], change_tracking=True)
        old.compact(full=True)

    def roll_back() -> None:
        altered.append([{"id": 3, "p": "a", **ADDED}])
        old.rollback_to(snapshot_id=before)
        old.compact(full=True)

    assert changed(altered, drop) == [("-D", 1, 1, "kept")]
    assert sorted(changed(altered, roll_back)) == [
        ("+I", 1, 1, "kept"),
        ("+I", 3, 1, "kept"),
        ("-D", 3, 1, "kept"),
    ]


DIFFERENCES: dict[str, Callable[[DynamicTable], object]] = {
    "tracked overwrite": lambda table: table.overwrite([{**ROW, "id": 3}], partition={"p": "a"}, change_tracking=True),
    "rollback": lambda table: table.rollback_to(snapshot_id=1, change_tracking=True),
}


@pytest.mark.parametrize("verb", DIFFERENCES)
@pytest.mark.parametrize(
    ("engine", "places"),
    [
        ("deduplicate", range(2, 14, 2)),
        pytest.param("deduplicate", range(1, 500), marks=pytest.mark.deep),
        pytest.param("aggregation", range(1, 500), marks=pytest.mark.deep),
    ],
)
def test_a_row_with_a_column_that_came_while_another_process_slept_reaches_streams_whole(
    engine: str, places: range, verb: str
) -> None:
    """It may come after the process has looked for a newer schema, and before it has taken the lease."""
    options = {"bucket": "1", "log.system": "none", "changelog-producer": "input", "lease.timeout": "1 s"}
    if engine != "deduplicate":
        options |= {"merge-engine": engine, "changelog-producer": "lookup"}
    for at in places:
        catalog = MemoryCatalog(environment=fake_environment())
        table = catalog.create_table("shop.t", COLUMNS, primary_key=["id", "p"], partition_by=["p"], options=options)
        table.append([{**ROW, "id": 2}])
        altered: list[DynamicTable] = []

        def others(table: DynamicTable = table, altered: list[DynamicTable] = altered) -> None:
            altered.append(table.alter(*CHANGES))
            altered[0].append([{"id": 1, "p": "a", **ADDED}])

        storage = SleepyStorage(table.environment.file_io, at, others)
        try:
            DIFFERENCES[verb](reopened_in(storage, table, names="sleeper"))
        except (CommitConflictError, LeaseLostError):
            continue
        if not altered:
            break
        altered[0].compact(full=True)

        rows: dict[int, tuple[Any, ...]] = {}
        stream = altered[0].stream(position=StreamPosition(snapshot_id=1, split_index=0))
        while (batch := stream.poll()) is not None:
            for change in batch.to_pylist():
                row = (change["id"], change["v"], change["x"])
                if change["_row_kind"] in ("-D", "-U"):
                    assert rows.pop(change["id"]) == row, at
                else:
                    rows[change["id"]] = row


OTHER_VERBS: dict[str, Callable[[DynamicTable], object]] = {
    **VERBS,
    "update": lambda table: table.update(col("id") == 1, {"v": 5}),
    "delete": lambda table: table.delete([{"id": 1, "p": "a"}]),
    "partial upsert": lambda table: table.upsert([{"id": 1, "p": "a", "v": 5}], partial=True),
    "rollback": lambda table: table.rollback_to(snapshot_id=1),
    "drop of a partition": lambda table: table.maintenance.drop_partitions([{"p": "a"}], change_tracking=True),
}


@pytest.mark.parametrize("verb", OTHER_VERBS)
@pytest.mark.parametrize("log", ["kafka", "none"])
@pytest.mark.parametrize("is_altered", [True, False])
def test_no_verb_of_a_dropped_table_changes_the_one_that_has_its_name_now(
    verb: str, log: str, *, is_altered: bool
) -> None:
    catalog = MemoryCatalog()
    options = {"bucket": "1", "log.system": log}
    catalog.create_table("shop.t", COLUMNS, primary_key=["id", "p"], partition_by=["p"], options=options)
    old = catalog.load_table("shop.t")
    if is_altered:
        old = old.alter(AddColumn("x", "STRING"))
    else:
        # With the schema of the new table, and snapshots that it has seen and which are others there.
        old.append([{**ROW, "v": 7}])
        old.append([{**ROW, "v": 8}])
    catalog.drop_table("shop.t")
    table = catalog.create_table("shop.t", COLUMNS, primary_key=["id", "p"], partition_by=["p"], options=options)
    table.append([ROW])

    with pytest.raises((NotFoundError, InvalidInputError), match=r"dropped|lack 'x'|does not exist"):
        OTHER_VERBS[verb](old)
    with pytest.raises(NotFoundError, match="was dropped"):
        old.refresh()

    assert table.to_arrow().to_pylist() == [ROW]
    assert table.inspect.latest_snapshot_id() == 1
