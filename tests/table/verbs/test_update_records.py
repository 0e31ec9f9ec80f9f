"""What ``update`` writes to the log: one ``u`` with both rows, for each row, or halves that other readers accept."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from storage_lib import DynamicTable, MemoryCatalog, col
from storage_lib.log_store.codec.debezium_json import DebeziumJson
from storage_lib.schema.options.table_options import ChangelogMode
from tests.support.deep_tests import thinned

COLUMNS = {"id": "BIGINT", "name": "STRING", "tags": "ARRAY<STRING>"}
ALL = {"log.changelog-mode": "all"}
GIVEN = {**ALL, "write.produce-update-before": "input"}


def records(table: DynamicTable) -> list[list[dict[str, Any]]]:
    """Return the values of the records of each bucket."""
    buckets = table.log._log().buckets  # type: ignore[union-attr]
    return [
        [json.loads(value) for stretch in bucket.stretches for value in stretch.columns.values.to_pylist()]
        for bucket in buckets
    ]


def row(number: int, name: str) -> dict[str, Any]:
    return {"id": number, "name": name, "tags": [name, None]}


@pytest.mark.parametrize("options", [{}, ALL])
def test_an_update_without_a_key_is_one_record_with_both_rows(options: dict[str, str]) -> None:
    table = MemoryCatalog({}).create_table("shop.visits", COLUMNS, options=options)
    table.append([row(1, "a"), row(2, "b"), row(2, "b"), row(3, "c")])

    table.update(col("id") >= 2, {"name": "z"})

    (found,) = records(table)
    assert [record["op"] for record in found] == ["c"] * 4 + ["u"] * 3
    assert [(record["before"], record["after"]) for record in found[4:]] == [
        (before, {**before, "name": "z"}) for before in (row(2, "b"), row(2, "b"), row(3, "c"))
    ]


@pytest.mark.parametrize("options", [ALL, GIVEN])
def test_an_update_of_a_key_is_one_record_with_both_rows(options: dict[str, str]) -> None:
    table = MemoryCatalog({}).create_table("shop.visits", COLUMNS, primary_key=["id"], options=options)
    table.append([row(1, "a"), row(2, "b")])

    table.update(col("id") >= 1, {"name": "z"})

    (found,) = records(table)
    assert sorted((record["op"], (record["before"] or {}).get("name")) for record in found) == [
        ("c", None),
        ("c", None),
        ("u", "a"),
        ("u", "b"),
    ]


@pytest.mark.parametrize("seed", thinned(range(24), 6))
def test_in_mode_all_no_update_lacks_a_row_and_the_records_add_up_to_the_table(seed: int) -> None:
    """The halves of an update whose rows are in different buckets are a deletion and an insert."""
    chance = Random(seed)  # noqa: S311  reproducible
    table = MemoryCatalog({}).create_table("shop.visits", COLUMNS, options={"bucket": str(chance.choice((1, 2, 5)))})
    for _ in range(4):
        table.append([row(chance.randrange(4), chance.choice("abc")) for _ in range(chance.randrange(1, 9))])
        table.update(col("id") >= chance.randrange(4), {"name": chance.choice("abcz")})
        if chance.random() < 0.5:
            table.delete(col("id") == chance.randrange(4))
        table.append([{**row(9, "new"), "_row_kind": "+U"}])

    content: list[dict[str, Any]] = []
    for record in (record for bucket in records(table) for record in bucket):
        assert (record["before"] is not None, record["after"] is not None) == {
            "c": (False, True),
            "u": (True, True),
            "d": (True, False),
        }[record["op"]]
        if record["before"] is not None:
            content.remove(record["before"])
        if record["after"] is not None:
            content.append(record["after"])
    assert sorted(map(str, content)) == sorted(str(each) for each in table.to_arrow().to_pylist())


def test_an_update_without_before_of_an_older_topic_is_read_as_its_new_row() -> None:
    table = MemoryCatalog({}).create_table("shop.visits", COLUMNS)
    codec = DebeziumJson.for_table(table.schema, ChangelogMode.AUTO)
    older = [
        {"before": row(1, "a"), "after": None, "op": "d"},
        {"before": None, "after": row(1, "z"), "op": "u"},
    ]
    found = codec.decode(pa.array([json.dumps(record).encode() for record in older]))

    assert found.rows.to_pylist() == [row(1, "a"), row(1, "z")]
    assert found.kinds.to_pylist() == [3, 2]
