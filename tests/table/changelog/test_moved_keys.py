"""A stream retracts the old row of a key that a commit has moved to another partition, not the new one."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from storage_lib import DynamicTable, MemoryCatalog, col
from storage_lib.table.changelog import complete_appends
from tests.support.deep_tests import thinned

COLUMNS = {"day": "STRING", "id": "BIGINT", "price": "BIGINT"}


def moving_table(**options: str) -> DynamicTable:
    spelled = {"bucket": "-1", "log.system": "none", **options}
    return MemoryCatalog().create_table("d.t", COLUMNS, primary_key=["id"], partition_by=["day"], options=spelled)


OPTIONS: list[dict[str, str]] = [
    {},
    {"dynamic-bucket.target-row-num": "2"},
    {"write-buffer-size": "64 b"},
    {"deletion-vectors.enabled": "true"},
    {"changelog-producer": "lookup"},
    {"merge-engine": "first-row"},
    {"merge-engine": "partial-update"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("seed", thinned(range(8), 1))
def test_each_retraction_takes_a_row_that_the_stream_holds(
    seed: int, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Small chunks, so that one commit spans many of them.
    monkeypatch.setattr(complete_appends, "ROWS_AT_ONCE", 3)
    chance = random.Random(seed)  # noqa: S311  not for secrets
    table = moving_table(**options)
    stream = table.stream(normalize="lookup")
    held: Counter[tuple[Any, ...]] = Counter()

    for number in range(25):
        _changed(chance, table, number)
        if chance.random() < 0.7:
            _apply(held, stream.poll())
    _apply(held, stream.poll())

    assert held == Counter(tuple(row.values()) for row in table.to_arrow().to_pylist()), f"seed {seed}"


def _changed(chance: random.Random, table: DynamicTable, number: int) -> None:
    rows = [
        {"day": chance.choice("abc"), "id": chance.randrange(6), "price": number * 100 + index}
        for index in range(chance.randrange(1, 9))
    ]
    deletes = table.options.merge_engine == "deduplicate"
    match chance.choice(["upsert", "upsert", "upsert", "delete", "overwrite", "compact"]):
        case "delete" if deletes:
            table.delete(col("id") == chance.randrange(6))
        case "overwrite":
            table.overwrite(list({row["id"]: row for row in rows}.values()), partition={}, change_tracking=True)
        case "compact":
            table.compact()
        case _:
            table.upsert(rows)


def _apply(held: Counter[tuple[Any, ...]], changes: pa.Table | None) -> None:
    for *row, kind in [] if changes is None else [tuple(each.values()) for each in changes.to_pylist()]:
        held[tuple(row)] += 1 if kind.startswith("+") else -1
        assert held[tuple(row)] >= 0, (kind, row)
        held += Counter()
