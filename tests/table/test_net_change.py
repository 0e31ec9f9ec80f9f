"""The difference of two tables, whatever their columns are called."""

from __future__ import annotations

import pyarrow as pa
import pytest

from storage_lib.schema.row_kind import ROW_KIND_SYMBOLS
from storage_lib.table.net_change import net_change

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
