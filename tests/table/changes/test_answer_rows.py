"""Rows added to and removed from an answer, against a model that counts them."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage_lib.errors import InvalidInputError
from storage_lib.table.changes.answer_rows import AnswerRows, Changes

SCHEMA = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("v", pa.float64())])
Row = tuple[int, float | None]
ROWS = st.tuples(st.integers(0, 4), st.sampled_from([None, 0.0, 1.5, float("inf")]))


def table_of(rows: list[Row]) -> pa.Table:
    return pa.table([[k for k, _ in rows], [v for _, v in rows]], schema=SCHEMA)


def batch_of(changes: list[tuple[int, Row]]) -> Changes:
    rows = pa.RecordBatch.from_pydict({"k": [r[0] for _, r in changes], "v": [r[1] for _, r in changes]}, schema=SCHEMA)
    return rows, pa.array([0 if sign > 0 else 3 for sign, _ in changes], pa.int8())


def applied(
    stored: dict[int, Row], batches: list[list[tuple[int, Row]]], bytes_in_memory: int = 1 << 20
) -> dict[int, Row]:
    """Return the stored rows after the resulting changes, each of which must match the stored row."""

    def find(keys: pa.Table) -> pa.Table:
        return table_of([stored[key] for key in set(keys.column("k").to_pylist()) if key in stored])

    writer = AnswerRows(table="db.t", primary_keys=("k",), find=find, bytes_in_memory=bytes_in_memory)
    there = dict(stored)
    for rows, kinds in list(writer.changes(batch_of(each) for each in batches)):
        for row, kind in zip(zip(*rows.to_pydict().values(), strict=True), kinds.to_pylist(), strict=True):
            key = row[0]
            if kind & 1:
                assert there.pop(key) == row
            else:
                assert key not in there
                there[key] = row
    return there


@given(
    before=st.lists(ROWS, max_size=4, unique_by=lambda row: row[0]),
    after=st.lists(ROWS, max_size=4),
    passing=st.lists(ROWS, max_size=4),
    order=st.randoms(use_true_random=False),
    bytes_in_memory=st.sampled_from([1, 1 << 20]),
)
def test_the_table_is_the_answer_or_the_commit_is_refused(
    before: list[Row], after: list[Row], passing: list[Row], order: object, bytes_in_memory: int
) -> None:
    changes = [(-1, row) for row in before] + [(1, row) for row in after]
    changes += [(sign, row) for row in passing for sign in (1, -1)]
    order.shuffle(changes)  # type: ignore[attr-defined]
    batches = [changes[: len(changes) // 2], changes[len(changes) // 2 :]]
    stored = {row[0]: row for row in before}
    is_unique = all(count == 1 for count in Counter(key for key, _ in after).values())

    if is_unique:
        assert applied(stored, [each for each in batches if each], bytes_in_memory) == {row[0]: row for row in after}
    else:
        with pytest.raises(InvalidInputError, match="two rows of the query share the key"):
            applied(stored, [each for each in batches if each], bytes_in_memory)


def test_a_row_beside_one_that_stays_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"share the key \{'k': 1\}: the table holds another row"):
        applied({1: (1, 1.5)}, [[(1, (1, 0.0))]])
    with pytest.raises(InvalidInputError, match="the table holds another row"):
        applied({1: (1, 1.5)}, [[(1, (1, 1.5))]])


def test_a_row_that_is_not_there_takes_nothing_away() -> None:
    assert applied({1: (1, 1.5)}, [[(-1, (1, 0.0))]]) == {1: (1, 1.5)}
