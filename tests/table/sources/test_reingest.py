"""Rejected records become rows after a fix, each exactly once, and never over newer rows."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from storage_lib import (
    AlterType,
    CommitConflictError,
    DynamicTable,
    InvalidInputError,
    MemoryCatalog,
    NotFoundError,
    reingest,
)
from storage_lib.schema.types.rejected_schema import REJECTED_SCHEMA
from storage_lib.table.sources.record_fixes import RecordFixes
from tests.support.deep_tests import thinned
from tests.support.fake_environment import fake_environment

COLUMNS = {"id": "BIGINT NOT NULL", "name": "VARCHAR(5)", "price": "BIGINT NOT NULL"}


def table_of(key: bool = True, **options: str) -> DynamicTable:  # noqa: FBT001, FBT002  a table of a test
    spelled = {name.replace("__", "."): value for name, value in options.items()}
    return MemoryCatalog(environment=fake_environment()).create_table(
        "shop.items", COLUMNS, primary_key=["id"] if key else (), options={"log.system": "none", **spelled}
    )


def change(op: str, before: object, after: object) -> bytes:
    return json.dumps({"before": before, "after": after, "op": op}).encode()


def created(item: int, name: object = "tea", price: object = 1) -> bytes:
    return change("c", None, {"id": item, "name": name, "price": price})


def reject(table: DynamicTable, *values: bytes | None, source: str = "shop.items", keys: bool = False) -> list[str]:
    """Store records as rejected ones; return their ids, in the order of their offsets."""
    first = table.inspect.rejected_count()
    records = [
        {
            "time_millis": None,
            "source": source,
            "topic": source,
            "partition": 0,
            "offset": first + place,
            "timestamp_millis": 0,
            "key": json.dumps({"id": first + place}).encode() if keys else None,
            "value": value,
            "column": "name",
            "reason": "does not fit",
        }
        for place, value in enumerate(values)
    ]
    table.append(
        pa.table(
            {
                name: pa.array([], each.type)
                for name, each in zip(table.arrow_schema.names, table.arrow_schema, strict=True)
            }
        ),
        rejected=pa.Table.from_pylist(records, schema=REJECTED_SCHEMA),
    )
    stored = table.inspect.rejected().sort_by("offset")
    return list(stored["id"].to_pylist()[first:])


def rows_in(table: DynamicTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(str(value) for value in row.values()) for row in table.to_arrow().to_pylist())


def test_a_fix_by_an_expression_lets_records_in_and_leaves_the_others() -> None:
    table = table_of()
    long, short, torn = reject(table, created(1, "teapot"), created(2), b'{"after": {"id"')

    result = reingest(table, fixes={"name": "left(name, 5)"})

    assert (result.record_count, result.row_count) == (2, 2)
    assert rows_in(table) == [("1", "teapo", "1"), ("2", "tea", "1")]
    assert list(result.remaining) == [torn] == table.inspect.rejected()["id"].to_pylist()
    assert "not JSON" in result.remaining[torn]
    assert {long, short}.isdisjoint(result.remaining)


def test_without_a_fix_nothing_changes_and_each_reason_is_told() -> None:
    table = table_of()
    long, empty = reject(table, created(1, "teapot"), created(2, price=None))

    result = reingest(table)

    assert result.snapshot is None
    assert "VARCHAR(5)" in result.remaining[long]
    assert "NOT NULL" in result.remaining[empty]
    assert table.inspect.rejected_count() == 2


def test_an_altered_column_takes_the_records_that_it_refused() -> None:
    table = table_of()
    reject(table, created(1, "teapot"))

    altered = table.alter(AlterType("name", "VARCHAR(20)"))

    assert reingest(altered).record_count == 1
    assert rows_in(altered) == [("1", "teapot", "1")]
    assert reingest(altered).record_count == 0


def test_numbers_of_a_fixed_record_keep_each_digit() -> None:
    table = table_of()
    record = (
        b'{"before":null,"after":{"id":9007199254740993,"name":"teapot","price":12345678901234567,"x":1.10},"op":"c"}'
    )
    reject(table, record)

    reingest(table, fixes={"name": "left(name, 3)"})

    assert rows_in(table) == [("9007199254740993", "tea", "12345678901234567")]
    fixed, _ = RecordFixes.parse({"name": "left(name, 3)"}).applied(pa.array([record], pa.binary()))
    assert b'"x": 1.10}' in fixed[0].as_py()


def test_fixes_see_the_values_that_the_record_has_whatever_their_order() -> None:
    table = table_of()
    reject(table, created(1, "teapot", 2))

    reingest(table, fixes={"price": "length(name)", "name": "concat('n', price)"})

    assert rows_in(table) == [("1", "n2", "6")]


@pytest.mark.parametrize(
    "record", [created(1, "tea\ud800pot"), b'{"op":"c","after":' + b'{"a":' * 3000 + b"1" + b"}" * 3001]
)
def test_a_record_that_no_fix_can_read_stays_and_the_others_leave(record: bytes) -> None:
    table = table_of()
    odd, _ = reject(table, record, created(2, "teapot"))

    result = reingest(table, fixes={"name": "left(name, 3)"})

    assert rows_in(table) == [("2", "tea", "1")]
    assert list(result.remaining) == [odd]


def test_a_fix_of_a_column_that_the_table_lacks_is_refused() -> None:
    table = table_of()
    reject(table, created(1, "teapot"))

    with pytest.raises(InvalidInputError, match=r"fix of 'Name', which is not a column; there are id, name, price"):
        reingest(table, fixes={"Name": "'tea'"})


def test_a_record_does_not_replace_a_row_that_may_be_newer_unless_asked() -> None:
    table = table_of()
    (old,) = reject(table, created(1, "teapot", 1))
    table.append([{"id": 1, "name": "cup", "price": 2}])
    fixes = {"name": "left(name, 3)"}

    kept = reingest(table, fixes=fixes)

    assert "may be newer" in kept.remaining[old]
    assert rows_in(table) == [("1", "cup", "2")]
    discarded = reingest(table, fixes=fixes, on_stored="discard")
    assert (discarded.record_count, discarded.row_count) == (1, 0)
    assert rows_in(table) == [("1", "cup", "2")]
    assert table.inspect.rejected_count() == 0
    reject(table, created(1, "teapot", 1))
    assert reingest(table, fixes=fixes, on_stored="replace").row_count == 1
    assert rows_in(table) == [("1", "tea", "1")]


def test_a_sequence_field_orders_old_records_and_newer_rows() -> None:
    table = table_of(sequence__field="price")
    reject(table, created(1, "teapot", 1), created(2, "teapot", 9))
    table.append([{"id": 1, "name": "cup", "price": 2}, {"id": 2, "name": "cup", "price": 2}])

    assert reingest(table, fixes={"name": "left(name, 3)"}).record_count == 2

    assert rows_in(table) == [("1", "cup", "2"), ("2", "tea", "9")]


def test_records_of_one_key_go_in_in_their_order() -> None:
    table = table_of()
    reject(
        table,
        created(1, "first!"),
        change("u", {"id": 1, "name": "first!", "price": 1}, {"id": 1, "name": "second", "price": 2}),
        created(2, "gone!!"),
        change("d", {"id": 2, "name": "gone!!", "price": 1}, None),
    )

    reingest(table, fixes={"name": "left(name, 2)"})

    assert rows_in(table) == [("1", "se", "2")]


def test_a_table_without_a_key_takes_each_record_once() -> None:
    table = table_of(key=False)
    reject(table, created(1, "teapot"), created(1, "teapot"))

    assert reingest(table, fixes={"name": "left(name, 3)"}).row_count == 2
    assert reingest(table, fixes={"name": "left(name, 3)"}).row_count == 0

    assert rows_in(table) == [("1", "tea", "1")] * 2


def test_upserts_are_decoded_with_the_keys_of_their_records() -> None:
    table = table_of()
    row = json.dumps({"id": 0, "name": "teapot", "price": 1}).encode()
    reject(table, row, keys=True)

    result = reingest(table, format="upsert-kafka", fixes={"name": "left(name, 3)"})

    assert result.remaining == {}
    assert rows_in(table) == [("0", "tea", "1")]


def test_a_choice_of_records_leaves_the_others() -> None:
    table = table_of()
    first, second = reject(table, created(1), created(2))
    reject(table, created(3), source="other")

    assert reingest(table, ids=[second]).record_count == 1
    assert reingest(table, source="other").record_count == 1

    assert table.inspect.rejected()["id"].to_pylist() == [first]
    with pytest.raises(NotFoundError, match="no rejected record"):
        reingest(table, ids=[second])
    assert table.maintenance.delete_rejected(ids=[first]) is not None
    assert table.maintenance.delete_rejected() is None
    assert rows_in(table) == [("2", "tea", "1"), ("3", "tea", "1")]


@pytest.mark.parametrize(
    ("fixes", "problem"),
    [
        ({"name": "left(name"}, "use an expression of SQL"),
        ({"name": "read_csv('/etc/passwd')"}, "read_csv may not be called"),
        ({"name": "repeat(name, 1000000000)"}, "repeat may not be called"),
        # What else Polars reads as a call, or as a query.
        ({"name": '"lpad"(name, 1000000000)'}, '"lpad" may not be called'),
        ({"name": "lpad/**/(name, 1000000000)"}, r"'/\*\*/\(name,.*may not be in it"),
        ({"name": "lpad --\n(name, 1000000000)"}, "may not be in it"),
        ({"name": "lpad\n(name, 1000000000)"}, "lpad may not be called"),
        ({"name": "(SELECT name FROM read_csv)"}, "it may not be a query"),
        ({"name": "$$tea$$"}, "may not be in it"),
    ],
)
def test_a_fix_that_is_no_expression_is_refused(fixes: Mapping[str, str], problem: str) -> None:
    table = table_of()
    reject(table, created(1, "teapot"))

    with pytest.raises(InvalidInputError, match=problem):
        reingest(table, fixes=fixes)


@pytest.mark.parametrize(
    "fix",
    [
        "left(name, 3) || '-' || upper(\"name\")",
        "case when price >= 1.5e0 and not (name is null) then 'it''s' else trim(name) end",
        "cast(price / 2 - -1 as decimal(9, 2))",
        "name in ('a', 'lpad(b') or name like '%--/*'",
    ],
)
def test_a_fix_may_be_any_expression_of_listed_functions(fix: str) -> None:
    RecordFixes.parse({"name": fix})


def test_a_fix_that_names_a_missing_column_leaves_the_record() -> None:
    table = table_of()
    (record,) = reject(table, created(1, "teapot"))

    result = reingest(table, fixes={"name": "left(nickname, 3)"})

    assert "'nickname'" in result.remaining[record]


def test_another_commit_of_the_key_meanwhile_is_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of()
    reject(table, created(1, "teapot"))
    lookup = DynamicTable.lookup

    def slow(self: DynamicTable, *arguments: Any, **named: Any) -> pa.Table:
        found = lookup(self, *arguments, **named)
        table.append([{"id": 1, "name": "cup", "price": 2}])
        return found

    monkeypatch.setattr(DynamicTable, "lookup", slow)
    with pytest.raises(CommitConflictError):
        reingest(table, fixes={"name": "left(name, 3)"})

    assert rows_in(table) == [("1", "cup", "2")]
    assert table.inspect.rejected_count() == 1


def _fits(name: str, price: int | None) -> bool:
    return len(name) <= 5 and price is not None


@pytest.mark.parametrize("seed", thinned(range(12), keep=2))
def test_random_records_are_in_the_table_or_rejected_after_each_mend(seed: int) -> None:
    """The table starts empty and each key comes once, so the order of the mends does not matter."""
    chance = random.Random(seed)  # noqa: S311  reproducible
    table = table_of(key=chance.random() < 0.5)
    wanted = {
        item: (chance.choice(["tea", "teapot", "kettle", "cup"]), chance.choice([None, 1, 2])) for item in range(60)
    }
    reject(table, *(created(item, name, price) for item, (name, price) in wanted.items()))
    mends: list[tuple[dict[str, str], Any]] = [
        ({}, lambda name, price: (name, price)),
        ({"name": "left(name, 4)"}, lambda name, price: (name[:4], price)),
        ({"price": "coalesce(price, 0)"}, lambda name, price: (name, price or 0)),
    ]
    expected: dict[int, tuple[str, int]] = {}
    for _ in range(5):
        fixes, model = chance.choice(mends)

        reingest(table, fixes=fixes)

        for item, (name, price) in wanted.items():
            fixed = model(name, price)
            if item not in expected and _fits(*fixed):
                expected[item] = fixed
        assert rows_in(table) == sorted((str(item), name, str(price)) for item, (name, price) in expected.items())
        left = {json.loads(each)["after"]["id"] for each in table.inspect.rejected()["value"].to_pylist()}
        assert left == wanted.keys() - expected.keys()
