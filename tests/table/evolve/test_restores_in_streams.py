"""A tracked rollback, publication of a branch, overwrite or drop reaches the table's own streams, or is refused.

Drawn over merge engines, changelog producers, buckets and deletion vectors: where the difference can't be appended, the
commit replaces files, and streams have to compare the contents.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from storage_lib import DynamicTable, InvalidInputError, MemoryCatalog
from storage_lib.table.stream.hybrid_source import HybridSource
from tests.support.deep_tests import crossed, thinned

COLUMNS = {"p": "STRING", "id": "BIGINT", "v": "INT"}
ENGINES: Mapping[str, Mapping[str, str]] = {
    "deduplicate": {},
    "sequence": {"sequence.field": "v"},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"},
    "first-row": {"merge-engine": "first-row"},
    "ignores deletions": {"ignore-delete": "true"},
}
BUCKETS: Mapping[str, Mapping[str, str]] = {
    "one bucket": {},
    "two buckets": {"bucket": "2"},
    "dynamic buckets": {"bucket": "-1", "dynamic-bucket.target-row-num": "2"},
    "deletion vectors": {"deletion-vectors.enabled": "true"},
}
PRODUCERS = ["none", "input", "lookup", "full-compaction"]


def _table(options: Mapping[str, str], *, primary_key: tuple[str, ...] = ("p", "id")) -> DynamicTable:
    catalog = MemoryCatalog({"log.system": "none"})
    return catalog.create_table(
        "db.t", COLUMNS, primary_key=list(primary_key), partition_by=["p"], options=dict(options)
    )


def _content(table: DynamicTable) -> dict[Any, Any]:
    return {(row["p"], row["id"]): row["v"] for row in table.to_arrow().to_pylist()}


class _Follower:
    """Rows that a reader of the stream has, who applies each change by its key."""

    def __init__(self, stream: HybridSource) -> None:
        self._stream = stream
        self.rows: dict[Any, Any] = {}

    def read(self) -> dict[Any, Any]:
        while (polled := self._stream.poll()) is not None:
            self.apply(polled.to_pylist())
        return self.rows

    def apply(self, changes: list[dict[str, Any]]) -> None:
        for change in changes:
            key = change["p"], change["id"]
            if change["_row_kind"] in ("+I", "+U"):
                self.rows[key] = change["v"]
            else:
                self.rows.pop(key, None)


def _commit(table: DynamicTable, verb: str, drawn: random.Random, step: int) -> None:
    """Commit with change tracking, unless that is refused."""
    rows = [{"p": drawn.choice("ab"), "id": drawn.randrange(4), "v": step} for _ in range(drawn.randrange(1, 4))]
    try:
        match verb:
            case "append":
                table.append(rows)
            case "rollback":
                newest = table.inspect.latest_snapshot_id() or 1
                table.rollback_to(snapshot_id=drawn.randint(1, newest), change_tracking=True)
            case "branch":
                table.branches.create(f"b{step}")
                table.branches.open(f"b{step}").append(rows)
                table.branches.fast_forward(f"b{step}", change_tracking=True)
            case "overwrite":
                table.overwrite(rows, partition={}, change_tracking=True)
            case "drop" if "a" in table.inspect.partition_values()["p"].to_pylist():
                table.maintenance.drop_partitions([{"p": "a"}], change_tracking=True)
            case _:
                table.compact(full=drawn.random() < 0.5)
    except InvalidInputError as error:
        if "change_tracking=False" not in str(error):
            raise


@pytest.mark.parametrize("engine", ["partial-update", "aggregation", "first-row", "sequence"])
@pytest.mark.parametrize("restores", ["rollback", "branch"])
def test_a_stream_sees_what_a_restored_content_changes(engine: str, restores: str) -> None:
    table = _table({**ENGINES[engine], "changelog-producer": "lookup"})
    table.append([{"p": "a", "id": 1, "v": 1}])
    table.branches.create("b")
    table.append([{"p": "a", "id": 2, "v": 2}]) if restores == "rollback" else None
    follower = _Follower(table.stream())
    follower.read()

    if restores == "rollback":
        table.rollback_to(snapshot_id=1)
    else:
        table.branches.open("b").append([{"p": "a", "id": 3, "v": 3}])
        table.branches.fast_forward("b")

    assert follower.read() == _content(table)


def test_a_key_that_is_in_another_dynamic_bucket_again_is_retracted_before_it_is_added() -> None:
    table = _table({"bucket": "-1", "dynamic-bucket.target-row-num": "1", "changelog-producer": "lookup"})
    for id_, tag in [(9, "first"), (1, "second"), (2, "all")]:
        table.append([{"p": "a", "id": id_, "v": 1}])
        table.tags.create(tag)
    table.rollback_to(tag="first")
    table.append([{"p": "a", "id": 2, "v": 1}])
    table.tags.create("moved")
    table.rollback_to(tag="all")
    follower, net = _Follower(table.stream()), _Follower(table.stream())
    net.rows = dict(follower.read())
    start = table.inspect.latest_snapshot_id()

    table.rollback_to(tag="moved")

    assert follower.read() == _content(table) == {("a", 9): 1, ("a", 2): 1}
    net.apply(table.changes(start_snapshot_id=start, mode="net").read_all().to_pylist())
    assert net.rows == _content(table)


@pytest.mark.parametrize(("engine", "producer", "buckets"), crossed(ENGINES, PRODUCERS, BUCKETS))
@pytest.mark.parametrize("seed", thinned(range(3), 1))
def test_a_follower_has_the_tables_rows_after_each_tracked_commit(
    engine: str, producer: str, buckets: str, seed: int
) -> None:
    drawn = random.Random(seed)  # noqa: S311  chance, not secrets
    options = {**ENGINES[engine], **BUCKETS[buckets], "changelog-producer": producer}
    try:
        table = _table(options)
    except InvalidInputError as error:
        pytest.skip(str(error))
    table.append([{"p": "a", "id": 0, "v": 0}])
    followers = [_Follower(table.stream()), _Follower(table.stream(normalize="lookup"))]
    start, net = table.inspect.latest_snapshot_id() or 0, _Follower(table.stream())
    net.rows = _content(table)

    for step in range(14):
        verb = drawn.choice(["append", "append", "rollback", "branch", "overwrite", "drop", "compact"])
        _commit(table, verb, drawn, step)
        expected = _content(table)
        for follower in followers:
            assert follower.read() == expected, (step, verb)

    net.apply(table.changes(start_snapshot_id=start, mode="net").read_all().to_pylist())
    assert net.rows == _content(table)
