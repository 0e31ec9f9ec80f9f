"""Tables with dynamic buckets: written, read, moved between partitions; the index stays consistent."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from storage_lib import CommitConflictError, DynamicTable, InvalidInputError, WarehouseCatalog
from storage_lib.schema.evolution.schema_changes import SetOption
from storage_lib.table.protocol.write_context import OverwriteScope, TableCommitMessage, WriteContext
from storage_lib.table.write.dynamic_buckets import assigners_of_rows, limits_of
from tests.support.deep_tests import thinned
from tests.support.dynamic_bucket_lives import Life, check_index
from tests.support.other_readers import needs_pypaimon, read_with_pypaimon, read_with_rust
from tests.support.paimon_core import PaimonCore

COLUMNS = {"id": "BIGINT", "p": "STRING", "n": "BIGINT"}
SMALL = {"bucket": "-1", "dynamic-bucket.target-row-num": "4"}


@pytest.fixture
def catalog(tmp_path: Path) -> WarehouseCatalog:
    return WarehouseCatalog(str(tmp_path), {"log.system": "none"})


def keyed(catalog: WarehouseCatalog, options: Mapping[str, str] | None = None, name: str = "db.t") -> DynamicTable:
    """Create a table in which a key belongs to one partition."""
    options = {**SMALL, **(options or {})}
    return catalog.create_table(name, COLUMNS, primary_key=["id", "p"], partition_by=["p"], options=options)


def crossing(catalog: WarehouseCatalog, options: Mapping[str, str] | None = None) -> DynamicTable:
    """Create a table in which a key can move between partitions."""
    options = {**SMALL, **(options or {})}
    return catalog.create_table("db.x", COLUMNS, primary_key=["id"], partition_by=["p"], options=options)


def some(ids: range | list[int], p: str = "a", n: int = 1) -> pa.Table:
    ids = list(ids)
    return pa.table({"id": ids, "p": [p] * len(ids), "n": [n] * len(ids)})


def rows(table: DynamicTable) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


def buckets(table: DynamicTable) -> set[int]:
    return set(table.inspect.files()["bucket"].to_pylist())


def index_files(table: DynamicTable) -> int:
    return len(list(Path(table.location.removeprefix("file://")).glob("index/index-*")))


def test_keys_are_spread_over_buckets_and_stay_there(catalog: WarehouseCatalog) -> None:
    table = keyed(catalog)
    table.append(some(range(10)))
    assert buckets(table) == {0, 1, 2}
    table.append(some(range(6, 14), n=2))
    assert rows(table) == [(key, "a", 1 if key < 6 else 2) for key in range(14)]
    assert buckets(table) == {0, 1, 2, 3}
    check_index(table)
    assert table.lookup([{"id": 9, "p": "a"}, {"id": 99, "p": "a"}])["n"].to_pylist() == [2]


def test_a_key_that_moves_is_in_its_new_partition_only(catalog: WarehouseCatalog) -> None:
    table = crossing(catalog)
    table.append(some([1, 2, 3]))
    table.append(pa.concat_tables([some([1], "b", 2), some([1], "c", 3), some([1, 2], "b", 4)]))
    assert rows(table) == [(1, "b", 4), (2, "b", 4), (3, "a", 1)]
    table.append(pa.table({"id": [2, 1], "p": ["a", "b"], "_row_kind": ["-D", "-D"]}))
    assert rows(table) == [(3, "a", 1)]
    assert table.lookup([{"id": 3}, {"id": 2}])["p"].to_pylist() == ["a"]


@pytest.mark.parametrize(
    ("engine", "expected"),
    [("partial-update", (1, "a", 9)), ("first-row", (1, "a", 1)), ("deduplicate", (1, "b", 9))],
)
def test_the_merge_engine_says_what_a_moving_row_does(
    catalog: WarehouseCatalog, engine: str, expected: tuple[object, ...]
) -> None:
    table = crossing(catalog, {"merge-engine": engine})
    table.append(some([1]))
    table.append(some([1], "b", 9))
    assert rows(table) == [expected]


@pytest.mark.parametrize("engine", ["partial-update", "aggregation"])
@pytest.mark.parametrize("cut", [(3,), (1, 2), (2, 1), (1, 1, 1)], ids=str)
def test_a_removed_key_begins_anew_in_the_partition_of_its_next_row(
    catalog: WarehouseCatalog, engine: str, cut: tuple[int, ...]
) -> None:
    table = crossing(catalog, {"merge-engine": engine, f"{engine}.remove-record-on-delete": "true"})
    table.append(some([1, 2]))
    changes = pa.table({"_row_kind": ["-D", "+I", "+I"], "id": [1, 1, 1], "p": ["a", "b", "c"], "n": [1, 2, 3]})
    begin = 0
    for count in cut:
        table.append(changes.slice(begin, count))
        begin += count
    assert rows(table) == [(1, "b", 3), (2, "a", 1)]


def test_two_writers_that_know_nothing_of_each_other_do_not_both_commit(catalog: WarehouseCatalog) -> None:
    for table in (keyed(catalog), crossing(catalog)):
        overwrite = table.new_write().begin(commit_user="slow", overwrite=OverwriteScope.of({}), tracked=False)
        task = table.new_write().open_task(overwrite)
        task.write(some([1], n=2))
        message = task.prepare_commit()
        table.append(some([1, 2]))
        with pytest.raises(CommitConflictError, match="changed rows after snapshot 0"):
            table.new_write().commit(overwrite, [message], 1)
        assert rows(table) == [(1, "a", 1), (2, "a", 1)]
        check_index(table)


def _whole(table: DynamicTable) -> object:
    from storage_lib.table.protocol.write_context import OverwriteScope

    return OverwriteScope.of({})


def test_a_tracked_overwrite_keeps_keys_that_another_number_of_assigners_brought(catalog: WarehouseCatalog) -> None:
    """The difference is published per bucket: a moved key would be added in one bucket, then deleted here."""
    table = keyed(catalog)
    table.append(some(range(30)))
    table = table.alter(SetOption("dynamic-bucket.initial-buckets", "3"))
    table.overwrite(some(range(0, 40, 2), n=2), partition={"p": "a"}, change_tracking=True)
    assert rows(table) == [(key, "a", 2) for key in range(0, 40, 2)]
    check_index(table)


def test_writers_of_other_partitions_do_not_meet(catalog: WarehouseCatalog) -> None:
    table = keyed(catalog)
    table.append(some([1], "b"))
    write_context = table.new_write().begin(commit_user="slow", overwrite=OverwriteScope.of({"p": "a"}), tracked=False)
    task = table.new_write().open_task(write_context)
    task.write(some([1], "a", 2))
    message = task.prepare_commit()
    table.append(some([2], "b"))
    table.new_write().commit(write_context, [message], 1)
    assert rows(table) == [(1, "a", 2), (1, "b", 1), (2, "b", 1)]


def _whole_of(partition: str) -> object:
    from storage_lib.table.protocol.write_context import OverwriteScope

    return OverwriteScope.of({"p": partition})


def _tasks(table: DynamicTable, *of_tasks: pa.Table) -> tuple[WriteContext, list[TableCommitMessage]]:
    write_context = table.new_write().begin(commit_user="tasks", tracked=False)
    messages = []
    for index, each in enumerate(of_tasks):
        task = table.new_write().open_task(write_context, task_index=index)
        task.write(each)
        messages.append(task.prepare_commit())
    return write_context, messages


def test_tasks_that_share_an_assigner_are_refused_and_leave_nothing(catalog: WarehouseCatalog) -> None:
    table = keyed(catalog)
    write_context, messages = _tasks(table, some([1]), some([2]))
    with pytest.raises(InvalidInputError, match=r"2 tasks brought rows of the same assigner.*coalesce\(1\)"):
        table.new_write().commit(write_context, messages, 1)
    assert rows(table) == []
    assert index_files(table) == 0
    assert not list(Path(table.location.removeprefix("file://")).rglob("*.parquet"))


@pytest.mark.parametrize("make", [keyed, crossing])
def test_tasks_with_assigners_of_their_own_write_side_by_side(
    catalog: WarehouseCatalog, make: Callable[..., DynamicTable]
) -> None:

    table = make(catalog, {"dynamic-bucket.assigner-parallelism": "3"})
    for n in (1, 2):
        every = pa.concat_tables([some(range(40), "a", n), some(range(40, 60), "b", n)]).combine_chunks()
        (batch,) = every.to_batches()
        assigners = assigners_of_rows(batch, table.schema, limits_of(table.options))
        parts = [every.filter(pa.array(assigners == number)) for number in range(3)]
        assert all(part.num_rows for part in parts)
        write_context, messages = _tasks(table, *parts)
        table.new_write().commit(write_context, messages, n)
        assert rows(table) == sorted(tuple(row.values()) for row in every.to_pylist())
        check_index(table)


def test_the_index_goes_with_dropped_partitions_and_old_snapshots(catalog: WarehouseCatalog) -> None:
    table = keyed(catalog)
    table.append(some(range(8), "a"))
    table.append(some(range(8), "b"))
    assert index_files(table) == 4
    table.tags.create("kept", snapshot_id=2)
    table.maintenance.drop_partitions([{"p": "a"}])
    table.overwrite(some([1], "b"), partition={"p": "b"}, change_tracking=False)
    check_index(table)
    table.maintenance.expire_snapshots(retain_last=1)
    assert index_files(table) == 5
    table.rollback_to(tag="kept")
    assert len(rows(table)) == 16
    check_index(table)
    table.append(some([3], "a", 7))
    assert len(rows(table)) == 16
    table.tags.delete("kept")
    table.compact()
    table.maintenance.expire_snapshots(retain_last=1)
    table.maintenance.remove_orphan_files(older_than=timedelta(0))
    assert index_files(table) == 4
    assert len(rows(table)) == 16


def test_an_aborted_write_leaves_no_index(catalog: WarehouseCatalog) -> None:
    table = keyed(catalog)
    write_context, messages = _tasks(table, some([1]))
    assert index_files(table) == 1
    table.new_write().abort(write_context, messages)
    assert index_files(table) == 0


def test_branches_have_indexes_of_their_own(catalog: WarehouseCatalog) -> None:
    table = keyed(catalog)
    table.append(some(range(6)))
    table.tags.create("then")
    table.branches.create("test", tag="then")
    branch = table.branches.open("test")
    branch.append(some(range(4, 12), n=2))
    table.append(some(range(5, 9), n=3))
    assert len(rows(branch)) == 12
    assert len(rows(table)) == 9
    check_index(branch)
    check_index(table)


def test_buckets_become_dynamic_and_fixed_again(catalog: WarehouseCatalog) -> None:
    table = keyed(catalog, {"bucket": "2"})
    table.append(some(range(9)))
    table = table.rewrite(options={"bucket": "-1"})
    assert buckets(table) == {0, 1, 2}
    table.append(some(range(5, 12), n=2))
    assert len(rows(table)) == 12
    check_index(table)
    table = table.rewrite(options={"bucket": "3"})
    assert len(rows(table)) == 12
    snapshot = table.context.file_store.snapshots.latest()
    assert snapshot is not None
    assert snapshot.index_manifest is None


def test_a_bucket_without_an_index_is_read_for_its_keys(catalog: WarehouseCatalog) -> None:
    """As left by a writer that writes no index."""
    table = keyed(catalog)
    table.append(some(range(6)))
    latest = table.context.file_store.snapshots.latest()
    assert latest is not None
    path = next(Path(table.location.removeprefix("file://")).glob("snapshot/snapshot-1"))
    path.write_text("\n".join(line for line in path.read_text().splitlines() if "indexManifest" not in line))
    table = catalog.load_table("db.t")
    table.append(some(range(4, 9), n=2))
    assert len(rows(table)) == 9
    check_index(table)


def test_what_cannot_be_right_is_refused(catalog: WarehouseCatalog) -> None:
    with pytest.raises(InvalidInputError, match=r"log.system=kafka can't be combined with bucket=-1"):
        catalog.create_table(
            "db.log",
            COLUMNS,
            primary_key=["id"],
            options={"bucket": "-1", "log.system": "kafka", "log.kafka.bootstrap.servers": "127.0.0.1:1"},
        )
    group = {"fields.n.sequence-group": "m", "partial-update.remove-record-on-sequence-group": "n"}
    with pytest.raises(InvalidInputError, match=r"Add the column to the primary key, or leave the option out"):
        catalog.create_table(
            "db.group",
            {**COLUMNS, "m": "BIGINT"},
            primary_key=["id"],
            partition_by=["p"],
            options={**SMALL, "merge-engine": "partial-update", **group},
        )
    table = crossing(catalog)
    table.append(some([1]))
    for partition in (None, {"p": "b"}):
        with pytest.raises(InvalidInputError, match=r"Overwrite the whole table \(partition={}\)"):
            table.overwrite(some([1], "b"), partition=partition)
    assert rows(table) == [(1, "a", 1)]


def test_a_reader_of_changes_by_key_keeps_every_key_that_moves(catalog: WarehouseCatalog) -> None:
    table = crossing(catalog)
    table.append(some(range(20), "b"))
    stream = table.stream()
    by_stream: dict[int, tuple[object, ...]] = {}
    apply(by_stream, stream.poll())
    first = dict(by_stream)
    chance = random.Random(5)  # noqa: S311  seeded
    for n in range(2, 8):
        ids = chance.sample(range(20), 9)
        table.append(pa.table({"id": ids, "p": chance.choices("abc", k=9), "n": [n] * 9}))
        table.compact()
        apply(by_stream, stream.poll())
        assert sorted(by_stream.values()) == rows(table)
    apply(first, table.changes(start_snapshot_id=1).read_all())
    assert sorted(first.values()) == rows(table)


def apply(known: dict[int, tuple[object, ...]], changes: pa.Table | None) -> None:
    for row in [] if changes is None else changes.to_pylist():
        kind = row.pop("_row_kind")
        if kind in ("-U", "-D"):
            known.pop(row["id"], None)
        else:
            known[row["id"]] = tuple(row.values())


@needs_pypaimon
@pytest.mark.integration
@pytest.mark.parametrize("make", [keyed, crossing])
def test_other_readers_show_the_same(
    catalog: WarehouseCatalog, tmp_path: Path, make: Callable[..., DynamicTable]
) -> None:
    table = make(catalog)
    table.append(pa.concat_tables([some(range(10), "a"), some(range(5, 12), "b", 2)]))
    table.append(pa.concat_tables([some(range(3), "b", 3), some([7], "a", 3)]))
    for found in (read_with_rust(tmp_path, table.name), read_with_pypaimon(tmp_path, table.name, tmp_path)):
        assert sorted(tuple(row.values()) for row in found.to_pylist()) == rows(table)
    table.compact()
    assert sorted(tuple(row.values()) for row in read_with_rust(tmp_path, table.name).to_pylist()) == rows(table)


@pytest.mark.parametrize("seed", thinned(range(12), keep=4))
def test_a_life_shows_what_was_written(seed: int, tmp_path: Path) -> None:
    Life(seed, tmp_path, None).live(10)


@pytest.mark.parametrize("seeds", thinned([range(1000, 1004), range(1004, 1012)]), ids=str)
def test_lives_shared_with_paimons_java_core_show_what_was_written(
    paimon_core: PaimonCore, tmp_path: Path, seeds: range
) -> None:
    for seed in seeds:
        Life(seed, tmp_path, paimon_core).live(8)
