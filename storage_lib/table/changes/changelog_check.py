"""Checks that changes follow from the stored rows and from each other (``write.produce-update-before=input``).

change        required state before it
+I            no row of the key
-U, -D        a row of the key, equal to what came in all columns
+U            the -U of the same key as the change right before it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from storage_lib.schema.types.row_kind import RETRACT_BIT, ROW_KIND_SYMBOLS, RowKind
from storage_lib.table.changes.comparable_frame import comparable_frame

_INDEX = "index"
_TEXT_MAX = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """A change that contradicts the stored row; rows as text, ``stored`` None if the key is not stored."""

    kind: str
    key: str
    stored: str | None
    came: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedStretch:
    """The result of a check: the first contradiction, or the rows of ``-U`` whose ``+U`` is still to come.

    ``is_closed``: for each checked row, whether it is not such a ``-U``.
    """

    contradiction: Contradiction | None
    open_updates: pa.Table
    is_closed: pa.Array


def checked_stretch(
    rows: pa.RecordBatch, kinds: pa.Array, old: pa.Table, open_updates: pa.Table, primary_keys: Sequence[str]
) -> CheckedStretch:
    """Check ``rows`` (kinds int8, in order) against ``old``, at most one row per key, with the same columns.

    ``open_updates`` are the ``-U`` that came last for their keys in earlier stretches; ``old`` has none of these keys.
    """
    every = pa.concat_tables([old, open_updates, pa.Table.from_batches([rows])])
    before_rows = old.num_rows + open_updates.num_rows
    keys = comparable_frame(every.select(primary_keys))
    of_key = keys.with_row_index(_INDEX).select(pl.col(_INDEX).min().over(keys.columns))[_INDEX].to_numpy()
    codes = np.concatenate(
        [
            np.full(old.num_rows, RowKind.INSERT, np.int8),
            np.full(open_updates.num_rows, RowKind.UPDATE_BEFORE, np.int8),
            kinds.to_numpy(zero_copy_only=False),
        ]
    )

    order = np.argsort(of_key, kind="stable")
    follows = of_key[order[1:]] == of_key[order[:-1]]
    before = np.full(len(codes), -1)
    before[order[1:][follows]] = order[:-1][follows]
    code_before = np.where(before >= 0, codes[before], RowKind.DELETE)
    was_there = code_before & RETRACT_BIT == 0
    in_update = code_before == RowKind.UPDATE_BEFORE

    retracts = codes & RETRACT_BIT == 1
    compared = np.flatnonzero(retracts & was_there & (np.arange(len(codes)) >= before_rows))
    differs = np.zeros(len(codes), bool)
    differs[compared[_differ(every, before[compared], compared)]] = True

    wrong = np.select(
        [
            (codes == RowKind.INSERT) & was_there,
            (codes == RowKind.UPDATE_AFTER) & ~in_update,
            (codes != RowKind.UPDATE_AFTER) & in_update,
            retracts & ~was_there,
            differs,
        ],
        [1, 2, 3, 4, 5],
        0,
    )
    wrong[:before_rows] = 0
    found = np.flatnonzero(wrong)
    last = np.ones(len(codes), bool)
    last[order[:-1][follows]] = False
    is_open = last & (codes == RowKind.UPDATE_BEFORE)
    is_closed = pa.array(~is_open[before_rows:])
    if not len(found):
        left_open = every.take(pa.array(np.flatnonzero(is_open)))
        return CheckedStretch(contradiction=None, open_updates=left_open, is_closed=is_closed)
    at = int(found[0])
    stored = _text(every, int(before[at])) if before[at] >= 0 and was_there[at] else None
    contradiction = Contradiction(
        kind=ROW_KIND_SYMBOLS[codes[at]],
        key=_text(every.select(primary_keys), at),
        stored=stored,
        came=_text(every, at),
        reason=_REASONS[wrong[at]],
    )
    return CheckedStretch(contradiction=contradiction, open_updates=every.slice(0, 0), is_closed=is_closed)


def unfinished_update(open_updates: pa.Table, primary_keys: Sequence[str]) -> Contradiction | None:
    """Return the first ``-U`` without a ``+U`` at the end of the commit; None if all updates are complete."""
    if not open_updates.num_rows:
        return None
    came = _text(open_updates, 0)
    key = _text(open_updates.select(primary_keys), 0)
    return Contradiction(kind="-U", key=key, stored=came, came=came, reason="its +U is not in this commit")


_REASONS = {
    1: "the key exists",
    2: "its -U did not come right before it",
    3: "the -U of the key before it lacks its +U",
    4: "the key does not exist",
    5: "it is not the stored row",
}


def _differ(every: pa.Table, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return for each pair of rows whether a column differs; nulls and NaNs equal themselves."""
    if not len(left):
        return np.zeros(0, bool)
    frame = comparable_frame(every)
    one, other = frame[left], frame[right]
    columns = [one[name].ne_missing(other[name]).to_numpy() for name in frame.columns]
    return np.logical_or.reduce(columns)


def _text(rows: pa.Table, at: int) -> str:
    text = ", ".join(f"{name}={value!r}" for name, value in rows.slice(at, 1).to_pylist()[0].items())
    return f"({text if len(text) <= _TEXT_MAX else text[:_TEXT_MAX] + '...'})"
