"""With ``sequence.field``, a verb that changes stored rows changes them, or its commit fails."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pytest

from storage_lib import DynamicTable, InvalidInputError, MemoryCatalog, col
from tests.support.deep_tests import thinned

COLUMNS = {"id": "BIGINT", "v": "INT", "s": "INT"}
SEQUENCE = {"sequence.field": "s"}
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "ascending": SEQUENCE,
    "descending": {**SEQUENCE, "sequence.field.sort-order": "descending"},
    "deletion vectors": {**SEQUENCE, "deletion-vectors.enabled": "true"},
    "dynamic buckets": {**SEQUENCE, "bucket": "-1"},
    "kept deletions": {**SEQUENCE, "compaction.keep-deletes": "true"},
    "write-only": {**SEQUENCE, "write-only": "true"},
}


def _table(options: Mapping[str, str]) -> DynamicTable:
    catalog = MemoryCatalog({"log.system": "none"})
    return catalog.create_table("db.t", COLUMNS, primary_key=["id"], options=dict(options))


def _row(id_: int, v: int, s: int | None) -> dict[str, Any]:
    return {"id": id_, "v": v, "s": s}


def _rows(table: DynamicTable) -> dict[int, tuple[Any, ...]]:
    return {row["id"]: (row["v"], row["s"]) for row in table.to_arrow().to_pylist()}


CHANGES: Mapping[str, Callable[[DynamicTable], object]] = {
    "update": lambda table: table.update(col("id") == 1, {"s": 5, "v": 2}),
    "update to null": lambda table: table.update(col("id") == 1, {"s": None, "v": 2}),
    "merge": lambda table: table.merge([_row(1, 2, 5)]),
    "merge of a deleted key": lambda table: table.merge([_row(2, 2, 5)]),
    "insert of a deleted key": lambda table: table.insert([_row(2, 2, 5)]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_an_older_sequence_would_hide_is_refused(change: str) -> None:
    table = _table(SEQUENCE)
    table.append([_row(1, 1, 10), _row(2, 1, 10)])
    table.delete([{"id": 2}])
    before = table.inspect.latest_snapshot_id()

    with pytest.raises(
        InvalidInputError, match=r"is older than the stored row or deletion .* and the stored one is 10"
    ):
        CHANGES[change](table)

    assert table.inspect.latest_snapshot_id() == before
    assert _rows(table) == {1: (1, 10)}


def test_an_append_and_an_upsert_ignore_older_rows() -> None:
    table = _table(SEQUENCE)
    table.append([_row(1, 1, 10)])

    table.append([_row(1, 2, 5)])
    table.upsert([_row(1, 3, 5)])
    table.upsert(pa.table({"id": [1], "s": pa.array([5], pa.int32())}), partial=True)

    assert _rows(table) == {1: (1, 10)}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("seed", thinned(range(4), 1))
def test_each_change_that_is_not_refused_is_in_the_table(options: str, seed: int) -> None:
    drawn = random.Random(seed)  # noqa: S311  chance, not secrets
    table = _table(OPTIONS[options])
    expected: dict[int, tuple[Any, ...]] = {}
    refused = 0

    for step in range(25):
        id_, v, s = drawn.randrange(3), step, drawn.choice([None, 1, 2, 3])
        verb = drawn.choice(["update", "insert", "merge", "delete", "compact"])
        try:
            if verb == "update":
                table.update(col("id") == id_, {"v": v, "s": s} if drawn.random() < 0.7 else {"v": v})
            elif verb == "insert" and id_ not in expected:
                table.insert([_row(id_, v, s)])
            elif verb == "merge":
                table.merge([_row(id_, v, s)])
            elif verb == "delete":
                table.delete([{"id": id_}])
            else:
                table.compact(full=drawn.random() < 0.5)
        except InvalidInputError:
            refused += 1
            assert _rows(table) == expected, (seed, step, verb)
            continue
        after = _rows(table)
        changed = {key for key in {*after, *expected} if after.get(key) != expected.get(key)}
        is_change = verb == "merge" or (verb == "insert" and id_ not in expected)
        is_change |= verb in ("update", "delete") and id_ in expected
        assert changed == ({id_} if is_change else set()), (seed, step, verb)
        assert id_ not in changed or (after[id_][0] == v if id_ in after else verb == "delete"), (seed, step, verb)
        expected = after

    assert refused
