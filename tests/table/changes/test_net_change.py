"""The difference of two tables, regardless of their columns' names."""

from __future__ import annotations

import pyarrow as pa
import pytest

from storage_lib.schema.types.row_kind import ROW_KIND_SYMBOLS, RowKind
from storage_lib.table.changes.net_change import net_change

CHANGED = {"-D": [1], "+U": [3], "+I": [4]}


def _by_kind(old: pa.Table, new: pa.Table, key: str) -> dict[str, list[object]]:
    found: dict[str, list[object]] = {}
    for batch, kinds in net_change(old, new, [key]):
        for value, kind in zip(batch.column(key).to_pylist(), kinds.to_pylist(), strict=True):
            found.setdefault(ROW_KIND_SYMBOLS[kind], []).append(value)
    return found


@pytest.mark.parametrize("name", ["__index", "key", "Ü 'quoted\"", "literal", "a.b", "*", "^x$"])
@pytest.mark.parametrize("value", ["value", "__old_index", "value_right", "ключ", "*", "^.*$"])
def test_names_of_columns_do_not_matter(name: str, value: str) -> None:
    if name == value:
        return
    old = pa.table({name: [1, 2, 3], value: ["gone", "same", "before"]})
    new = pa.table({name: [2, 3, 4], value: ["same", "after", "new"]})

    assert _by_kind(old, new, name) == CHANGED


def test_zeros_of_both_signs_are_two_keys_and_two_values() -> None:
    schema = pa.schema([("key", pa.float64()), ("value", pa.float32())])
    old = pa.table({"key": [0.0, -0.0, 1.0, 2.0], "value": [1.0, 2.0, 0.0, None]}, schema=schema)
    new = pa.table({"key": [0.0, -0.0, 1.0, 2.0], "value": [1.0, 3.0, -0.0, float("nan")]}, schema=schema)

    found = [(kinds[0].as_py(), str(row)) for rows, kinds in net_change(old, new, ["key"]) for row in rows.to_pylist()]

    assert found == [
        (RowKind.UPDATE_AFTER, "{'key': -0.0, 'value': 3.0}"),
        (RowKind.UPDATE_AFTER, "{'key': 1.0, 'value': -0.0}"),
        (RowKind.UPDATE_AFTER, "{'key': 2.0, 'value': nan}"),
    ]
