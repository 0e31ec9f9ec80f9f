"""A table whose compactions mark old versions as deleted: its content, and that its files need no merge."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from storage_lib import InvalidInputError, MemoryCatalog, open_catalog
from storage_lib.errors import CommitConflictError
from storage_lib.file_store.data_file.key_value import VALUE_KIND
from storage_lib.io.environment import system_environment
from storage_lib.schema.types.row_kind import RowKind
from tests.support.deletion_vectors import move_up
from tests.support.fake_environment import fake_environment
from tests.support.orders_table import COLUMNS, content, orders, rows
from tests.support.other_readers import needs_pypaimon, read_with_pypaimon, read_with_rust
from tests.support.stored_table import StoredTable, orders_schema

OPTIONS = {
    "bucket": "1",
    "deletion-vectors.enabled": "true",
    "deletion-vectors.merge-on-read": "true",
    "num-sorted-run.compaction-trigger": "3",
    "num-levels": "6",
    # Small files have equal sizes: only their number counts.
    "compaction.max-size-amplification-percent": "1000000",
    "compaction.size-ratio": "-99",
}
LEVELED = {
    "compaction.strategy": "leveled",
    "compaction.level0-file-num-trigger": "2",
    "compaction.max-bytes-for-level-base": "1 kb",
    "compaction.max-bytes-for-level-multiplier": "2",
    "target-file-size": "1 b",
}


def _table(**options: str) -> StoredTable:
    return StoredTable(orders_schema({**OPTIONS, **options}), fake_environment())


def _old_and_new(table: StoredTable) -> None:
    """Write ten keys to the last level, and above them a run with two updates and one deletion."""
    table.append([("a", key, "old") for key in range(10)])
    table.compact()
    for key in (3, 5):
        table.append([("a", key, "new")])
    table.append([("a", 7, None)], [RowKind.DELETE])


@pytest.mark.parametrize("options", [{}, LEVELED], ids=["universal", "leveled"])
@pytest.mark.parametrize("seed", range(3))
def test_it_holds_what_a_dictionary_holds_and_no_key_stands_twice(seed: int, options: dict[str, str]) -> None:
    random = np.random.default_rng(seed)
    table = _table(**options)
    model: dict[int, str] = {}

    for number in range(25):
        ids = random.integers(0, 60, random.integers(1, 25)).tolist()
        kinds = [RowKind(kind) for kind in random.choice([RowKind.INSERT, RowKind.INSERT, RowKind.DELETE], len(ids))]
        table.append([("a", key, str(number)) for key in ids], kinds)
        for key, kind in zip(ids, kinds, strict=True):
            model.pop(key, None)
            if kind is RowKind.INSERT:
                model[key] = str(number)
        if number % 3 == 0:
            table.compact(full=bool(random.random() < 0.1))

        assert sorted(table.rows()) == sorted(("a", key, value) for key, value in model.items())
        _assert_each_key_stands_once(table)


def _assert_each_key_stands_once(table: StoredTable) -> None:
    """Check that each key occurs once above level 0, and that no row is only a deletion."""
    entries = [entry for entry in table.store.scan.live_files(table.store.snapshots.latest()) if entry.file.level > 0]
    found: Counter[int] = Counter()
    for entry in entries:
        reader = table.store.read.reader(entry.partition, entry.bucket)
        for batch in reader.read(entry.file, ["id", VALUE_KIND], batch_rows=1000):
            found.update(batch.column("id").to_pylist())
            assert set(batch.column(VALUE_KIND).to_pylist()) == {int(RowKind.INSERT)}
    assert set(found.values()) <= {1}


def test_a_compaction_marks_rows_below_and_rewrites_only_what_is_new() -> None:
    table = _table()
    _old_and_new(table)

    snapshot = table.compact(full=False)

    assert snapshot is not None
    assert snapshot.index_manifest is not None
    assert table.files() == ["0/4/2", "0/5/10"]
    assert table.rows() == [
        *(("a", key, "old") for key in (0, 1, 2)), ("a", 3, "new"), ("a", 4, "old"), ("a", 5, "new"),
        *(("a", key, "old") for key in (6, 8, 9)),
    ]  # fmt: skip
    assert table.rows(store=table.reopened()) == table.rows()


def test_one_index_file_holds_all_vectors_of_a_bucket_and_older_ones_expire() -> None:
    table = _table()
    _old_and_new(table)
    table.compact(full=False)
    for key in (1, 2, 3):
        table.append([("a", key, "newest")])
    table.compact(full=False)

    assert len(table.names_on_storage("index")) == 2
    table.store.expire.expire(retain_min=1, retain_max=1)

    assert len(table.names_on_storage("index")) == 1
    assert [row[2] for row in table.rows()] == ["old", "newest", "newest", "newest", "old", "new", "old", "old", "old"]


def test_a_file_of_which_nothing_stands_is_taken_out() -> None:
    table = _table()
    table.append([("a", 1, "old"), ("a", 2, "old")])
    table.compact()
    table.append([("a", 1, "new"), ("a", 2, "new")])
    for key in range(10, 300, 100):
        table.append([("a", number, "a long piece of text that takes room") for number in range(key, key + 50)])

    snapshot = table.compact(full=False)

    assert snapshot is not None
    assert snapshot.index_manifest is None
    assert len(table.rows()) == 152


def test_a_full_compaction_leaves_no_vector() -> None:
    table = _table()
    _old_and_new(table)
    table.compact(full=False)

    snapshot = table.compact(full=True)

    assert snapshot is not None
    assert snapshot.index_manifest is None
    assert table.files() == ["0/5/9"]


def test_of_two_compactions_of_one_bucket_the_second_is_dropped_without_a_trace() -> None:
    table = _table()
    _old_and_new(table)
    first, second = table.compaction_messages(full=False), table.compaction_messages(full=False)
    table.commit(first)
    before = table.rows()

    with pytest.raises(CommitConflictError):
        table.commit(second)
    table.store.abort(second)

    assert table.rows() == before
    assert len(table.names_on_storage("index")) == 1


def test_an_append_meanwhile_does_not_hinder_a_compaction() -> None:
    table = _table()
    _old_and_new(table)
    messages = table.compaction_messages(full=False)
    table.append([("a", 3, "newest")])

    table.commit(messages)

    assert ("a", 3, "newest") in table.rows()
    assert len(table.rows()) == 9


def test_a_compaction_that_did_not_know_a_file_in_which_to_mark_is_dropped() -> None:
    table = _table()
    _old_and_new(table)
    messages = table.compaction_messages(full=False)
    known = _names(table)
    table.append([("a", 100, "moved up")])
    move_up(table, *(_names(table) - known))

    with pytest.raises(CommitConflictError, match="another compaction changed the files or marked rows"):
        table.commit(messages)

    assert len(table.rows()) == 10


def _names(table: StoredTable) -> set[str]:
    return {entry.file.file_name for entry in table.store.scan.live_files(table.store.snapshots.latest())}


@needs_pypaimon
def test_other_readers_see_the_same_rows(tmp_path: Path) -> None:
    table = StoredTable(orders_schema(OPTIONS), system_environment(), root=f"{tmp_path}/db.db/t")
    _old_and_new(table)
    table.compact(full=False)
    expected = sorted(table.rows())
    assert len(expected) == 9

    assert _told(read_with_rust(tmp_path, "db.t")) == expected
    assert _told(read_with_pypaimon(tmp_path, "db.t", tmp_path)) == expected


def _told(read: pa.Table) -> list[tuple[object, ...]]:
    return sorted((row["dt"], row["id"], row["item"]) for row in read.to_pylist())


def test_rows_are_seen_at_once_and_compacted_by_their_writer() -> None:
    options = {
        key: OPTIONS[key] for key in OPTIONS if key.startswith(("compaction.", "num-", "deletion-vectors.enabled"))
    }
    table = orders(None, **options)
    table.append(rows(*(f"+I a {key} 0" for key in range(4))))
    table.compact()

    for number in range(1, 4):
        table.append(rows(f"+U a {number} 1", "-D a 0 0"))
        expected = {f"a {key} {int(key <= number)}" for key in range(1, 4)}
        assert content(table) == expected
        # Engines that do not merge skip level 0.
        assert 0 not in table.inspect.files().column("level").to_pylist()

    assert "COMPACT" in table.inspect.snapshots().column("commit_kind").to_pylist()[2:]


def test_vectors_in_use_are_no_orphans() -> None:
    options = {key: text for key, text in OPTIONS.items() if key != "deletion-vectors.merge-on-read"}
    table = orders(None, **options)
    table.append(rows(*(f"+I a {key} 0" for key in range(4))))
    table.compact()
    for number in range(1, 4):
        table.append(rows(f"+U a {number} 1"))
    snapshot = table.new_read().plan().snapshot
    assert snapshot is not None
    assert snapshot.index_manifest is not None

    removed = table.maintenance.remove_orphan_files(older_than=timedelta(0))

    assert removed.paths == ()
    assert content(table) == {"a 0 0", "a 1 1", "a 2 1", "a 3 1"}


def test_bitmaps_of_64_bits_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="deletion-vectors"):
        MemoryCatalog().create_table(
            "a.b",
            COLUMNS,
            primary_key=["dt", "id"],
            options={"deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": "true"},
        )


@pytest.mark.parametrize("options", [{"merge-engine": "partial-update"}, {"sequence.field": "price"}])
def test_rows_that_are_merged_are_marked_as_well(options: dict[str, str]) -> None:
    merged = {"log.system": "none", **options}
    marked, plain = orders(None, **merged, **{"deletion-vectors.enabled": "true"}), orders(None, **merged)
    for table in (marked, plain):
        table.append(rows("+I a 1 10", "+I a 2 20", "+I a 3 -"))
        table.compact(full=True)
        table.append(rows("+U a 1 -", "+U a 2 15", "+U a 3 30"))
        table.append(rows("+U a 2 25", "-D a 3 30") if "sequence.field" in options else rows("+U a 2 25"))

    assert content(marked) == content(plain)
    assert content(marked) >= {"a 2 25"}


def test_a_table_on_disk_is_read_by_the_next_process(tmp_path: Path) -> None:
    table = orders(open_catalog(str(tmp_path)), **{"deletion-vectors.enabled": "true", "log.system": "none"})
    for number in range(7):
        table.append(rows(f"+I a {number % 3} {number}"))

    again = open_catalog(str(tmp_path)).load_table("shop.orders")

    assert content(again) == {"a 0 6", "a 1 4", "a 2 5"}
