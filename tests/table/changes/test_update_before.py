"""With ``log.changelog-mode=all`` the log contains the old row of each change, regardless of the input."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from storage_lib import InvalidInputError, MemoryCatalog
from storage_lib.schema.types.row_kind import ROW_KIND_SYMBOLS
from storage_lib.table.changes.update_before import complete_changes
from tests.support.breaking_log import BreakingLog
from tests.support.fake_environment import fake_environment
from tests.support.orders_table import COLUMNS, content, orders, reopened, rows, streamed
from tests.support.strict_changelog import strictly_applied, told

ALL = {"log.changelog-mode": "all"}


def life(seed: int, *, commits: int = 12, rows_max: int = 12) -> list[list[str]]:
    """Return commits of a few changes to few keys of two partitions, including deletions of unknown keys."""
    chance = random.Random(seed)  # noqa: S311  not for secrets
    return [
        [
            f"{chance.choice(['+I', '+U', '+U', '-D'])} {chance.choice('ab')} {chance.randrange(8)} {number * 100 + n}"
            for n in range(chance.randrange(1, rows_max))
        ]
        for number in range(commits)
    ]


@pytest.mark.parametrize("seed", range(6))
def test_upserts_alone_make_a_log_of_complete_changes(seed: int) -> None:
    table = orders(None, **ALL)
    commits = life(seed)
    for number, changes in enumerate(commits):
        table.append(rows(*changes))
        if number % 5 == 4:
            table.compact()

    assert streamed(table) == told(change for changes in commits for change in changes)
    assert strictly_applied(streamed(table)) == content(table)


def test_a_write_of_many_batches_looks_into_what_it_has_written_itself() -> None:
    table = orders(None, **ALL, **{"write-buffer-size": "64 b"})
    commits = life(7, commits=30)
    table.append(rows("+I a 1 1", "+I b 2 2"))
    table.append(pa.concat_tables([rows(*changes) for changes in commits]))

    expected = told(["+I a 1 1", "+I b 2 2", *(change for changes in commits for change in changes)])
    assert streamed(table) == expected
    newest = table.context.file_store.snapshots.latest()
    assert newest is not None


@pytest.mark.parametrize("seed", range(4))
def test_a_log_that_lost_its_transactions_is_completed_with_the_rows_before(seed: int) -> None:
    catalog = MemoryCatalog(environment=fake_environment())
    table = orders(catalog, **ALL, bucket="2")
    assert table.log is not None
    log = BreakingLog(table.log)
    broken = reopened(table, log)
    chance = random.Random(seed)  # noqa: S311  not for secrets
    for changes in life(seed + 20):
        log.loses_next_commits = chance.choice([0, 0, 1, 2])
        broken.append(rows(*changes))
    log.loses_next_commits = 0
    broken.append(rows("+I a 99 1"))

    assert strictly_applied(_by_bucket(streamed(table))) == content(table)


def test_replaced_and_dropped_content_is_told_once() -> None:
    table = orders(None, **ALL)
    table.append(rows("+I a 1 1", "+I a 2 2", "+I b 1 1"))
    table.overwrite(rows("+I a 2 20", "+I a 3 30"), partition={"dt": "a"}, change_tracking=True)
    table.maintenance.drop_partitions([{"dt": "b"}], change_tracking=True)

    changes = streamed(table)
    assert strictly_applied(changes) == content(table) == {"a 2 20", "a 3 30"}
    assert len(changes) == 3 + 4 + 1


def test_the_same_commit_twice_is_told_once() -> None:
    table = orders(None, **ALL)
    for _ in range(2):
        table.append(rows("+U a 1 1"), commit_user="stream", commit_identifier=1)
        table.append(rows("+U a 1 2"), commit_user="stream", commit_identifier=2)

    assert streamed(table) == ["+I a 1 1", "-U a 1 1", "+U a 1 2"]


def test_a_log_with_old_rows_needs_a_log() -> None:
    with pytest.raises(InvalidInputError, match=r"log\.changelog-mode=all .*log\.system=none"):
        orders(None, **ALL, **{"log.system": "none"})


def test_an_old_half_that_came_with_its_new_one_is_no_change_of_its_own() -> None:
    old = rows("+I a 1 1", "+I a 2 2").select(COLUMNS.names)
    batch = rows("-U a 1 9", "-U a 2 2", "+U a 1 10", "-U a 3 3", "+I a 2 5").combine_chunks().to_batches()[0]
    kinds = pa.array([ROW_KIND_SYMBOLS.index(kind) for kind in batch["_row_kind"].to_pylist()], pa.int8())

    found = complete_changes(batch.select(COLUMNS.names), kinds, old, ["dt", "id"])

    texts = [
        f"{ROW_KIND_SYMBOLS[kind]} {row['id']} {row['price']}"
        for kind, row in zip(found.kinds.to_pylist(), found.rows.to_pylist(), strict=True)
    ]
    assert texts == ["-U 1 1", "+U 1 10", "-U 2 2", "+U 2 5"]
    assert found.came_from.tolist() == [2, 2, 4, 4]
    assert found.since(3).rows.num_rows == 2


def _by_bucket(changes: list[str]) -> list[str]:
    """Sort by key: order is kept within a key, but keys of different buckets may arrive in any order."""
    return sorted(changes, key=lambda change: change.split()[1:3])
