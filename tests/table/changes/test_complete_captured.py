"""Values that changes leave out, completed by whole columns, equal those that a loop over the rows gives."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from storage_lib.schema.types.row_kind import RowKind
from storage_lib.table.changes.complete_captured import completed_rows

_COLUMNS = pa.schema([("k", pa.float64()), ("j", pa.string()), ("a", pa.int64()), ("b", pa.list_(pa.string()))])
_KEYS = ("k", "j")
_KINDS = (RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE)
_UNKNOWN = object()
Row = dict[str, Any]


@pytest.mark.parametrize("seed", range(60))
def test_what_is_left_out_comes_from_the_row_before_it(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  chance, not secrets
    keys = [(k, j) for k in (0.0, -0.0, float("nan")) for j in ("x", "y")]
    stored = [_drawn(chance, key) for key in keys if chance.random() < 0.5]
    changes = [_drawn(chance, chance.choice(keys)) for _ in range(chance.randint(0, 25))]
    kinds = [chance.choice(_KINDS) for _ in changes]
    left_out = {name: np.array([chance.random() < 0.4 for _ in changes], bool) for name in ("a", "b")}
    required = {
        name: mask & np.array([chance.random() < 0.5 for _ in changes], bool) for name, mask in left_out.items()
    }
    for name, mask in left_out.items():
        for row, is_left_out in zip(changes, mask, strict=True):
            row[name] = None if is_left_out else row[name]

    found = completed_rows(
        _KEYS,
        pa.Table.from_pylist(changes, _COLUMNS),
        pa.array(kinds, pa.int8()),
        left_out,
        required,
        lambda asked: _looked_up(stored, asked),
    )

    rows, places, unfound = _completed(stored, changes, kinds, left_out, required)
    assert [_text(row) for row in found.rows.to_pylist()] == [_text(row) for row in rows]
    assert found.came_from.tolist() == places
    assert found.kinds.to_pylist() == [kinds[place] for place in places]
    assert {name: places.tolist() for name, places in found.unfound.items()} == unfound


def _drawn(chance: random.Random, key: tuple[float, str]) -> Row:
    value = chance.choice([None, 1, 2, 3])
    return {"k": key[0], "j": key[1], "a": value, "b": chance.choice([None, [], ["x", None], [str(value)]])}


def _looked_up(stored: list[Row], asked: pa.Table) -> pa.Table:
    wanted = {_key(row) for row in asked.to_pylist()}
    return pa.Table.from_pylist([row for row in stored if _key(row) in wanted], _COLUMNS)


def _completed(
    stored: list[Row],
    changes: list[Row],
    kinds: list[RowKind],
    left_out: dict[str, np.ndarray],
    required: dict[str, np.ndarray],
) -> tuple[list[Row], list[int], dict[str, list[int]]]:
    """Return the completed rows, their places, and by column the places of values that had to be found and were not."""
    state: dict[str, Row | None] = {_key(row): row for row in stored}
    rows, places, unfound = list[Row](), list[int](), dict[str, list[int]]()
    for place, (change, kind) in enumerate(zip(changes, kinds, strict=True)):
        before, row = state.get(_key(change)), dict(change)
        lacks = [name for name, mask in left_out.items() if mask[place]]
        known = dict(row)
        for name in lacks:
            known[name] = _UNKNOWN if before is None else before[name]
            row[name] = None if known[name] is _UNKNOWN else known[name]
            if known[name] is _UNKNOWN and required[name][place]:
                unfound.setdefault(name, []).append(place)
        follows = list(zip(kinds, map(_key, changes), strict=True))[place + 1 : place + 2]
        is_moved = kind is RowKind.UPDATE_BEFORE and follows != [(RowKind.UPDATE_AFTER, _key(change))]
        # The row before an update has just been seen; its values are those of the update, too.
        state[_key(change)] = None if kind is RowKind.DELETE or is_moved else known
        if not (lacks and kind in (RowKind.DELETE, RowKind.UPDATE_BEFORE) and before is None):
            rows.append(row)
            places.append(place)
    return rows, places, unfound


def _key(row: Row) -> str:
    return f"{row['k']!r} {row['j']}"


def _text(row: Row) -> str:
    return repr(list(row.values()))
