"""Key-only deletions are completed with the row that they delete."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from storage_lib import DynamicTable, MemoryCatalog
from storage_lib.schema.types.row_kind import ROW_KIND_SYMBOLS
from storage_lib.table.changes.complete_deletes import with_whole_deletes
from storage_lib.table.write import task_deletions
from tests.support.fake_environment import fake_environment
from tests.support.orders_table import COLUMNS, NAME, applied, content, orders, rows, streamed


def completed(table: DynamicTable, *changes: str) -> list[str]:
    given = rows(*changes)
    kinds = pa.array([ROW_KIND_SYMBOLS.index(kind) for kind in given["_row_kind"].to_pylist()], pa.int8())
    data = given.drop_columns("_row_kind").cast(table.arrow_schema)
    told, kinds = with_whole_deletes(table.schema.primary_keys, data, kinds, table.lookup)
    return [
        f"{ROW_KIND_SYMBOLS[kind]} {row['dt']} {row['id']} {'-' if row['price'] is None else row['price']}"
        for kind, row in zip(kinds.to_pylist(), told.to_pylist(), strict=True)
    ]


def test_the_row_is_looked_for_in_the_batch_and_then_in_the_table() -> None:
    table = orders(None)
    table.append(rows("+I a 1 10", "+I a 2 20"))

    told = completed(table, "-D a 1 -", "+I a 3 30", "-D a 3 -", "-D a 3 -", "+I a 3 31", "-D a 9 -", "+I a 2 21")

    assert told == ["-D a 1 10", "+I a 3 30", "-D a 3 30", "+I a 3 31", "+I a 2 21"]


def by_key(changes: list[str]) -> list[str]:
    """Sort by key: order is kept within a key, but keys of different buckets may arrive in any order."""
    return sorted(changes, key=lambda change: change.split()[1:3])


@pytest.mark.parametrize("options", [{"bucket": "2"}, {"log.changelog-mode": "all"}], ids=["upsert", "all"])
@pytest.mark.parametrize("seed", range(3))
def test_a_task_finds_what_it_has_written_itself(
    seed: int, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With any lookup batch size; price is NOT NULL, but a deletion may lack it."""
    random = Random(seed)  # noqa: S311  the same draws at every run
    monkeypatch.setattr(task_deletions, "_ROWS_AT_ONCE", random.choice([1, 4, 1000]))
    columns = pa.schema([*list(COLUMNS)[:2], pa.field("price", pa.int64(), nullable=False)])
    table = MemoryCatalog(environment=fake_environment()).create_table(
        NAME, columns, primary_key=["dt", "id"], partition_by=["dt"], options=options
    )
    table.append(rows(*(f"+I a {key} {key * 10}" for key in range(4))))
    before, batches, whole = content(table), list[pa.RecordBatch](), list[str]()
    held = {key.rsplit(maxsplit=1)[0]: key for key in before}
    for number in range(40):
        key = f"a {random.randrange(8)}"
        if random.random() < 0.5:
            change = f"-D {key} -"
            whole += [f"-D {held.pop(key)}"] if key in held else []
        else:
            change = f"+U {key} {number + 100}"
            held[key] = f"{key} {number + 100}"
            whole.append(change)
        batches += rows(change).to_batches()

    position = table.stream(startup="latest").initial_position()

    order = table.new_write().begin(commit_user="task")
    write = table.new_write().open_task(order, task_index=0)
    write.write_all(batches)
    table.new_write().commit(order, [write.prepare_commit()], commit_identifier=1)

    assert content(table) == set(held.values())
    assert applied(streamed(table)) == content(table)
    if "bucket" in options:
        assert by_key(streamed(table, position)) == by_key(whole)


@pytest.mark.parametrize("seed", range(5))
def test_what_remains_is_what_a_dictionary_says(seed: int) -> None:
    random, table = Random(seed), orders(None)  # noqa: S311  the same draws at every run
    held = {str(key): str(key * 10) for key in range(4)}
    table.append(rows(*(f"+I a {key} {price}" for key, price in held.items())))
    changes, expected = [], []
    for number in range(200):
        key = str(random.randrange(8))
        if random.random() < 0.5:
            changes.append(f"+I a {key} {number}")
            expected.append(changes[-1])
            held[key] = str(number)
        else:
            changes.append(f"-D a {key} -")
            if key in held:
                expected.append(f"-D a {key} {held.pop(key)}")

    assert completed(table, *changes) == expected


def test_an_append_tells_the_log_the_whole_row_of_a_deletion_by_key() -> None:
    table = orders(None)
    table.append(rows("+I a 1 10"))

    table.append(rows("-D a 1 -", "-D a 2 -"))

    assert streamed(table) == ["+I a 1 10", "-D a 1 10"]
    assert content(table) == set()


def test_an_update_that_moves_a_row_to_another_key_leaves_nothing_behind_in_the_log() -> None:
    for options in ({}, {"log.consistency": "eventual"}, {"log.changelog-mode": "all"}):
        table = orders(None, **options)
        table.append(rows("+I a 1 10", "+I a 2 20"))

        table.append(rows("-U a 1 10", "+U b 1 10", "-U a 2 20", "+U a 2 21"))

        assert content(table) == {"b 1 10", "a 2 21"}
        assert applied(streamed(table)) == content(table)
