"""With ``write.produce-update-before=input``, a commit that contradicts the stored rows is refused as a whole."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from storage_lib import InvalidInputError
from tests.support.deep_tests import thinned
from tests.support.orders_table import content, orders, rows, streamed
from tests.support.strict_changelog import strictly_applied

if TYPE_CHECKING:
    from storage_lib import DynamicTable

INPUT = {"log.changelog-mode": "all", "write.produce-update-before": "input"}


@pytest.fixture
def table() -> DynamicTable:
    table = orders(None, **INPUT)
    table.append(rows("+I a 1 1"))
    return table


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            ["+U a 1 2"],
            r"\+U of key \(dt='a', id=1\) .* its -U did not come right before it\. Stored: .*price=1\); came",
        ),
        (["+U a 9 2"], r"\+U of key .*id=9.*its -U did not come.*Stored: no row"),
        (["+I a 1 2"], r"\+I of key \(dt='a', id=1\).*the key exists\. Stored: \(dt='a', id=1, price=1\); .*price=2"),
        (["-D a 2 2"], r"-D of key .*id=2.*the key does not exist\. Stored: no row"),
        (["-D a 1 2"], r"-D .*it is not the stored row\. Stored: .*price=1\); came: .*price=2\)"),
        (["-U a 1 2", "+U a 1 3"], r"-U .*it is not the stored row"),
        (["-U a 1 1"], r"-U .*its \+U is not in this commit"),
        (["-U a 1 1", "+I a 1 2"], r"\+I .*lacks its \+U"),
        (["-U a 1 1", "-D a 1 1"], r"-D .*lacks its \+U"),
        (["-D a 1 1", "-D a 1 1"], r"-D .*the key does not exist"),
        (["-D a 1 1", "+U a 1 1"], r"\+U .*its -U did not come"),
        (["+I b 1 1", "+I b 1 1"], r"\+I of key .*dt='b'.*the key exists"),
        (["-D a 1 1", "+I a 1 7", "+I b 5 5", "-U a 1 8", "+U a 1 9"], r"-U .*Stored: .*price=7\); came: .*price=8"),
    ],
)
def test_a_change_that_does_not_follow_is_refused_and_nothing_is_committed(
    table: DynamicTable, changes: list[str], said: str
) -> None:
    with pytest.raises(InvalidInputError, match=rf"shop\.orders: {said}.*Nothing was committed.*=lookup"):
        table.append(rows(*changes))

    assert content(table) == {"a 1 1"}
    assert streamed(table) == ["+I a 1 1"]
    table.append(rows("-U a 1 1", "+U a 1 2"))
    assert streamed(table) == ["+I a 1 1", "-U a 1 1", "+U a 1 2"]


def test_changes_that_follow_are_written_as_they_came(table: DynamicTable) -> None:
    changes = ["-U a 1 1", "+U a 1 2", "-D a 1 2", "+I a 1 3", "+I a 2 1", "-D a 2 1"]

    table.append(rows(*changes))

    assert sorted(streamed(table)) == sorted(["+I a 1 1", *changes])
    assert content(table) == {"a 1 3"}


@pytest.mark.parametrize("batch_rows", [1, 2, 3])
def test_a_pair_may_be_cut_by_batches_and_flushes(batch_rows: int) -> None:
    table = orders(None, **INPUT, **{"write-buffer-size": "1 b"})
    every = rows("+I a 1 1", "-U a 1 1", "+U a 1 2", "+I b 1 1", "-U a 1 2", "-U b 1 1", "+U a 1 3", "+U b 1 2")

    table.append(pa.Table.from_batches(every.to_batches(max_chunksize=batch_rows)))

    assert content(table) == {"a 1 3", "b 1 2"}
    assert strictly_applied(streamed(table)) == content(table)
    with pytest.raises(InvalidInputError, match=r"-U .*its \+U is not in this commit"):
        table.append(pa.Table.from_batches(rows("-U a 1 3", "+I a 7 7").to_batches(max_chunksize=1)))


@pytest.mark.parametrize("seed", thinned(range(8), keep=2))
def test_a_log_of_accepted_commits_is_the_table(seed: int) -> None:
    """Random changes, most of them valid: a commit is accepted if and only if a plain Python model accepts it."""
    chance = random.Random(seed)  # noqa: S311  not for secrets
    table = orders(None, **INPUT, bucket="2")
    stored: dict[tuple[str, int], int] = {}
    refused = 0
    for number in range(40):
        changes = _changes(chance, dict(stored), number)
        after = _applied(stored, changes)
        if after is None:
            refused += 1
            with pytest.raises(InvalidInputError, match="Nothing was committed"):
                table.append(rows(*changes))
            continue
        table.append(rows(*changes))
        stored = after
        if number % 9 == 8:
            table.compact()

    assert 0 < refused < 40
    assert content(table) == {f"{dt} {id_} {price}" for (dt, id_), price in stored.items()}
    assert strictly_applied(sorted(streamed(table), key=lambda change: change.split()[1:3])) == content(table)


def test_updates_without_their_old_rows_are_refused_when_the_table_is_made() -> None:
    with pytest.raises(InvalidInputError, match=r"ignore-delete=true drops each -U.*=lookup"):
        orders(None, **INPUT, **{"ignore-delete": "true"})


def _changes(chance: random.Random, there: dict[tuple[str, int], int], number: int) -> list[str]:
    """Return one commit: changes that are consistent with ``there``, occasionally an inconsistent one."""
    changes = []
    for step in range(chance.randrange(1, 5)):
        key = (chance.choice("ab"), chance.randrange(3))
        name, new = f"{key[0]} {key[1]}", number * 10 + step
        old = there.get(key)
        if chance.random() < 0.1:
            changes.append(f"{chance.choice(['+I', '-U', '+U', '-D'])} {name} {new if old is None else old}")
        if old is None:
            changes.append(f"+I {name} {new}")
            there[key] = new
        elif chance.random() < 0.3:
            changes.append(f"-D {name} {old}")
            del there[key]
        else:
            changes += [f"-U {name} {old}", f"+U {name} {new}"]
            there[key] = new
    return changes


def _applied(stored: dict[tuple[str, int], int], changes: list[str]) -> dict[tuple[str, int], int] | None:
    """Return the stored rows after the changes; None if one of them is inconsistent."""
    there, opened = dict(stored), set[tuple[str, int]]()
    for change in changes:
        kind, dt, id_, price = change.split()
        key = (dt, int(id_))
        if (kind == "+U") != (key in opened):
            return None
        opened.discard(key)
        if kind in ("+I", "+U"):
            if key in there:
                return None
            there[key] = int(price)
        else:
            if there.get(key) != int(price):
                return None
            del there[key]
            if kind == "-U":
                opened.add(key)
    return None if opened else there
