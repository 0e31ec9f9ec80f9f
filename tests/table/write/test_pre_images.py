"""The old rows of a task's changes are looked up once for all components that need them."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from storage_lib import CommitConflictError
from storage_lib.table.read.point_lookup import PointLookup
from storage_lib.table.write import task_deletions
from tests.support.orders_table import content, orders, rows, streamed
from tests.support.strict_changelog import strictly_applied, told


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the ids of looked-up keys, one entry per lookup."""
    ids: list[int] = []
    rows_of = PointLookup.rows_of

    def noting(self: PointLookup, snapshot: object, keys: pa.Table, **options: object) -> pa.Table:
        ids.extend(keys["id"].to_pylist())
        return rows_of(self, snapshot, keys, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(PointLookup, "rows_of", noting)
    return ids


def test_a_deletion_by_key_and_the_log_share_one_look_up(looked_up: list[int]) -> None:
    table = orders(None, **{"log.changelog-mode": "all", "bucket": "2"})
    table.append(rows("+I a 1 10", "+I a 2 20", "+I a 3 30"))
    before = table.stream(startup="latest").initial_position()
    looked_up.clear()

    table.append(rows("-D a 1 -", "+U a 2 21", "-D a 3 -", "+I a 4 40", "-D a 5 -"))

    assert sorted(looked_up) == [1, 2, 3, 4, 5]
    assert sorted(streamed(table, before)) == ["+I a 4 40", "+U a 2 21", "-D a 1 10", "-D a 3 30", "-U a 2 20"]
    assert content(table) == {"a 2 21", "a 4 40"}


@pytest.mark.parametrize("seed", range(8))
def test_however_a_task_is_cut_its_log_follows_upon_what_was_there(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole and key-only deletions, looked up together or one by one, before and after a flush of the task."""
    random = Random(seed)  # noqa: S311  the same draws at every run
    monkeypatch.setattr(task_deletions, "_ROWS_AT_ONCE", random.choice([1, 5, 1000]))
    options = {"log.changelog-mode": "all", "write-buffer-size": random.choice(["64 b", "2 kb", "1 mb"])}
    table = orders(None, **options)
    first = ["+I a 1 1", "+I a 2 2", "+I b 3 3"]
    table.append(rows(*first))
    commits = [
        [
            f"{kind} {random.choice('ab')} {random.randrange(6)} {'-' if kind == '-D' and random.random() < 0.7 else n}"
            for n, kind in enumerate(random.choices(["+I", "+U", "-D"], k=random.randrange(1, 12)))
        ]
        for _ in range(20)
    ]

    order = table.new_write().begin(commit_user="u")
    task = table.new_write().open_task(order)
    task.write_all([batch for changes in commits for batch in rows(*changes).to_batches()])
    table.new_write().commit(order, [task.prepare_commit()], commit_identifier=1)

    assert streamed(table) == told([*first, *(change for changes in commits for change in changes)])
    assert strictly_applied(streamed(table)) == content(table)


@pytest.mark.parametrize(
    ("options", "count"),
    [({}, 1), ({"log.consistency": "eventual"}, 0), ({"log.system": "none"}, 0)],
    ids=["transactional", "eventual", "no log"],
)
def test_only_a_log_with_transactions_has_deletions_looked_up_by_tasks(
    options: dict[str, str], count: int, looked_up: list[int]
) -> None:
    table = orders(None, **options)

    task = table.new_write().open_task(table.new_write().begin(commit_user="u"))
    task.write(rows("-D a 1 -"))

    assert len(looked_up) == count


@pytest.mark.parametrize("mode", ["upsert", "all"])
def test_a_base_that_expires_before_it_is_looked_into_is_a_conflict(mode: str) -> None:
    table = orders(None, **{"log.changelog-mode": mode})
    table.append(rows("+I a 1 10"))
    table.append(rows("+U a 1 11"))
    order = table.new_write().begin(commit_user="u")
    task = table.new_write().open_task(order)
    table.compact()
    table.maintenance.expire_snapshots(retain_last=1)

    with pytest.raises(CommitConflictError, match="that this write is based on expired"):
        task.write(rows("-D a 1 -"))
    table.new_write().abort(order, [])
