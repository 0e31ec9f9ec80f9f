"""Deletions that came with a key only get the row that they delete."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from storage_lib import DynamicTable
from storage_lib.schema.row_kind import ROW_KIND_SYMBOLS
from storage_lib.table.complete_deletes import with_whole_deletes
from tests.support.orders_table import orders, rows


def completed(table: DynamicTable, *changes: str) -> list[str]:
    given = rows(*changes)
    kinds = pa.array([ROW_KIND_SYMBOLS.index(kind) for kind in given["_row_kind"].to_pylist()], pa.int8())
    told, kinds = with_whole_deletes(table, given.drop_columns("_row_kind").cast(table.arrow_schema), kinds)
    return [
        f"{ROW_KIND_SYMBOLS[kind]} {row['dt']} {row['id']} {'-' if row['price'] is None else row['price']}"
        for kind, row in zip(kinds.to_pylist(), told.to_pylist(), strict=True)
    ]


def test_the_row_is_looked_for_in_the_batch_and_then_in_the_table() -> None:
    table = orders(None)
    table.append(rows("+I a 1 10", "+I a 2 20"))

    told = completed(table, "-D a 1 -", "+I a 3 30", "-D a 3 -", "-D a 3 -", "+I a 3 31", "-D a 9 -", "+I a 2 21")

    assert told == ["-D a 1 10", "+I a 3 30", "-D a 3 30", "+I a 3 31", "+I a 2 21"]


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
