"""Rows before a change: they need not fit where their key is enough, and are rejected where none is taken back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from storage_lib import AddColumn, DynamicTable, InvalidInputError, MemoryCatalog
from tests.support.fake_environment import fake_environment
from tests.support.raw_topic import RawTopic

COLUMNS = {"id": "BIGINT NOT NULL", "name": "VARCHAR(5)", "price": "DECIMAL(6, 2)"}
PLACEHOLDER = "__debezium_unavailable_value"
COUNTED = {"merge-engine": "aggregation", "fields.price.aggregate-function": "max"}
TAKES_NOTHING_BACK = {
    "partial-update": {"merge-engine": "partial-update"},
    "first-row": {"merge-engine": "first-row"},
    "max": COUNTED,
}
Row = dict[str, Any]
TRUNCATES = {"on-truncate": "apply"}


def table_of(**options: str) -> DynamicTable:
    catalog = MemoryCatalog(environment=fake_environment())
    given = {"log.system": "none", **options}
    return catalog.create_table("shop.items", COLUMNS, primary_key=["id"], options=given)


def row(item: int, name: str = "tea", price: str = "1.00") -> Row:
    return {"id": item, "name": name, "price": price}


def tell(topic: RawTopic, op: str, before: Row | None, after: Row | None) -> None:
    record = {"before": before, "after": after, "op": op}
    topic.tell(json.dumps({"id": (after or before or {}).get("id")}).encode(), json.dumps(record).encode())


def ingest(topic: RawTopic, table: DynamicTable, **more: str) -> tuple[int, list[int]]:
    """Ingest; return how many records were rejected now, and the ids of the table's rows."""
    options = {"debezium.decimal-handling-mode": "string", **{f"source.{key}": value for key, value in more.items()}}
    result = topic.ingest(table, on_reject="quarantine", before_image="whole", options=options)
    return result.rejected_count, sorted(table.to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("bad", [row(1, name="teapot"), row(1, price="123456.00")], ids=["too long", "too large"])
def test_an_update_that_corrects_a_value_is_taken_although_the_row_before_does_not_fit(bad: Row) -> None:
    table, topic = table_of(), RawTopic()
    tell(topic, "c", None, bad)
    tell(topic, "u", bad, row(1, name="cup"))

    assert ingest(topic, table) == (1, [1])
    assert table.to_arrow()["name"].to_pylist() == ["cup"]


@pytest.mark.parametrize("bad", [row(1, name="teapot"), row(1, price="123456.00")], ids=["too long", "too large"])
def test_a_row_that_does_not_fit_is_deleted_and_gets_another_key(bad: Row) -> None:
    for op, after, expected in (("d", None, []), ("u", row(2), [2])):
        table, topic = table_of(), RawTopic()
        tell(topic, "c", None, row(1))
        tell(topic, "u", row(1), bad)
        tell(topic, op, bad, after)

        assert ingest(topic, table) == (1, expected), op


def test_a_row_that_comes_back_under_its_old_key_has_no_values_of_the_row_that_left_it() -> None:
    table, topic = table_of(), RawTopic()
    tell(topic, "c", None, row(1))
    ingest(topic, table)
    tell(topic, "u", row(1), row(2))
    tell(topic, "c", None, {"id": 1, "name": "cup"})

    assert ingest(topic, table) == (0, [1, 2])
    assert table.to_arrow().sort_by("id")["price"].to_pylist()[0] is None


@pytest.mark.parametrize("engine", TAKES_NOTHING_BACK)
def test_a_deletion_is_rejected_where_the_table_takes_no_row_back(engine: str) -> None:
    table, topic = table_of(**TAKES_NOTHING_BACK[engine]), RawTopic()
    tell(topic, "c", None, row(1))
    tell(topic, "d", row(1), None)
    tell(topic, "c", None, row(2))

    assert ingest(topic, table) == (1, [1, 2])


@pytest.mark.parametrize("engine", ["partial-update", "first-row"])
def test_an_update_is_taken_by_its_key_where_the_table_takes_no_row_back(engine: str) -> None:
    table, topic = table_of(**TAKES_NOTHING_BACK[engine]), RawTopic()
    tell(topic, "c", None, row(1))
    tell(topic, "u", row(1), row(1, name="cup"))

    assert ingest(topic, table) == (0, [1])
    assert table.to_arrow()["name"].to_pylist() == ["cup" if engine == "partial-update" else "tea"]


def test_a_record_of_some_columns_that_does_not_fit_is_rejected_by_a_partial_update() -> None:
    table, topic = table_of(**TAKES_NOTHING_BACK["partial-update"]), RawTopic()
    for number, name in enumerate(("tea", "teapot", "cup")):
        tell(topic, "c", None, {"id": number, "name": name})

    assert ingest(topic, table) == (1, [0, 2])


@pytest.mark.parametrize(
    "options",
    [*TAKES_NOTHING_BACK.values(), {"ignore-delete": "true"}, {"merge-engine": "aggregation"}],
    ids=[*TAKES_NOTHING_BACK, "ignore-delete", "aggregation"],
)
def test_a_table_that_a_deletion_does_not_empty_applies_no_truncation(options: dict[str, str]) -> None:
    table, topic = table_of(**options), RawTopic()
    tell(topic, "c", None, row(1))

    with pytest.raises(InvalidInputError, match=r"on-truncate=apply can't empty it. Use source.on-truncate=ignore"):
        ingest(topic, table, **TRUNCATES)

    assert table.count() == 0


@pytest.mark.parametrize("engine", ["partial-update", "aggregation"])
def test_a_table_that_removes_rows_by_deletions_applies_a_truncation(engine: str) -> None:
    table, topic = table_of(**{"merge-engine": engine, f"{engine}.remove-record-on-delete": "true"}), RawTopic()
    tell(topic, "c", None, row(1))
    topic.tell(None, b'{"before":null,"after":null,"op":"t"}')
    tell(topic, "c", None, row(2))

    assert ingest(topic, table, **TRUNCATES) == (0, [2])


def test_a_truncation_gives_streams_the_columns_that_others_have_added() -> None:
    table, topic = table_of(**{"changelog-producer": "input"}), RawTopic()
    altered = table.alter(AddColumn("note", "STRING"))
    altered.append([{"id": 1, "name": "tea", "price": 1, "note": "kept"}])
    stream = altered.stream(startup="latest")
    topic.tell(None, b'{"before":null,"after":null,"op":"t"}')

    assert ingest(topic, table, **TRUNCATES) == (0, [])

    changes = stream.poll()
    assert changes is not None
    assert changes.select(["_row_kind", "id", "note"]).to_pylist() == [{"_row_kind": "-D", "id": 1, "note": "kept"}]


def test_an_unchanged_value_waits_for_the_rejected_record_that_changed_it() -> None:
    table, topic = table_of(), RawTopic()
    tell(topic, "c", None, row(1))
    tell(topic, "u", None, row(1, name="teapot", price="2.00"))
    assert ingest(topic, table) == (1, [1])
    tell(topic, "u", None, row(1, name="cup", price=PLACEHOLDER))

    assert ingest(topic, table) == (1, [1])

    reasons = table.inspect.rejected().sort_by("offset")["reason"].to_pylist()
    assert "(partition 0, offset 1) was rejected, which may have changed it" in reasons[1]
    assert table.to_arrow().to_pylist()[0]["name"] == "tea"


def test_records_that_are_rejected_late_count_for_the_limit() -> None:
    table, topic = table_of(), RawTopic()
    for number in range(5):
        tell(topic, "u", None, row(number, name=PLACEHOLDER))

    with pytest.raises(InvalidInputError, match=r"option source\.reject-max"):
        ingest(topic, table, **{"reject-max": "4"})

    assert table.inspect.rejected_count() == 0
    assert ingest(topic, table, **{"reject-max": "5"}) == (5, [])


def test_a_table_without_a_key_takes_back_a_row_that_it_does_not_have_from_the_next_equal_one() -> None:
    """As after RENAME TABLE, where the row came in another topic; the order of records does not matter then."""
    catalog = MemoryCatalog(environment=fake_environment())
    table, topic = catalog.create_table("shop.items", COLUMNS, options={"log.system": "none"}), RawTopic()
    tell(topic, "u", row(1), row(1, name="cup"))

    assert ingest(topic, table) == (0, [1])
    tell(topic, "c", None, row(1))
    tell(topic, "c", None, row(1))

    assert ingest(topic, table) == (0, [1, 1])
    assert sorted(table.to_arrow()["name"].to_pylist()) == ["cup", "tea"]
