"""Rows that do not pass a user's check are refused with their records: each is accepted or rejected, never both."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from storage_lib import DynamicTable, InvalidInputError, MemoryCatalog, reingest
from tests.support.fake_environment import fake_environment
from tests.support.raw_topic import RawTopic

COLUMNS = {"id": "BIGINT NOT NULL", "item": "STRING", "price": "INT"}
UNCHANGED = "__debezium_unavailable_value"


def not_negative(rows: pa.Table) -> dict[int, tuple[str | None, str]]:
    """Refuse negative prices."""
    bad = pc.fill_null(pc.less(rows["price"], 0), fill_value=False).to_numpy(zero_copy_only=False)
    return {int(place): ("price", f"{rows['price'][int(place)]} is negative") for place in np.flatnonzero(bad)}


def cheap_tea(rows: pa.Table) -> dict[int, tuple[str | None, str]]:
    """Refuse tea for more than 9, which takes both columns."""
    bad = pc.and_(pc.equal(rows["item"], "tea"), pc.greater(rows["price"], 9)).to_numpy(zero_copy_only=False)
    return {int(place): (None, "tea is cheap") for place in np.flatnonzero(bad)}


def table_of(options: Mapping[str, str] | None = None, *, key: bool = True) -> DynamicTable:
    catalog = MemoryCatalog(environment=fake_environment())
    of_table = {"log.system": "none", **(options or {})}
    return catalog.create_table("shop.items", COLUMNS, primary_key=["id"] if key else [], options=of_table)


def send(topic: RawTopic, op: str, key: int, item: str | None = None, price: int | None = None) -> None:
    row = {"id": key, "item": item, "price": price}
    before = {"id": key, "item": None, "price": None} if op == "d" else None
    record = {"before": before, "after": None if op == "d" else row, "op": op, "source": {"connector": "postgresql"}}
    topic.tell(json.dumps({"id": key}).encode(), json.dumps(record).encode())


def rows_of(table: DynamicTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


def test_a_row_that_does_not_pass_is_kept_apart_and_the_row_before_it_stays() -> None:
    table, topic = table_of(), RawTopic()
    send(topic, "c", 1, "tea", 4)
    send(topic, "u", 1, "tea", -4)
    send(topic, "c", 2, "cup", 9)

    result = topic.ingest(table, on_reject="quarantine", expect=not_negative)

    assert rows_of(table) == [(1, "tea", 4), (2, "cup", 9)]
    assert (result.row_count, result.rejected_count) == (2, 1)
    (rejected,) = table.inspect.rejected().to_pylist()
    assert (rejected["offset"], rejected["column"], rejected["reason"]) == (1, "price", "-4 is negative")


def test_a_row_is_checked_when_it_is_complete() -> None:
    table, topic = table_of(), RawTopic()
    send(topic, "c", 1, "tea", 4)
    topic.ingest(table, on_reject="quarantine", expect=cheap_tea)
    send(topic, "u", 1, UNCHANGED, 10)
    send(topic, "u", 1, "cup", 10)
    send(topic, "u", 1, UNCHANGED, 11)

    topic.ingest(table, on_reject="quarantine", expect=cheap_tea)

    assert rows_of(table) == [(1, "cup", 11)]
    assert [(each["offset"], each["reason"]) for each in table.inspect.rejected().to_pylist()] == [(1, "tea is cheap")]


def test_after_a_refused_row_nobody_knows_the_values_that_a_record_leaves_out() -> None:
    table, topic = table_of(), RawTopic()
    send(topic, "c", 1, "tea", 4)
    send(topic, "u", 1, "cup", -1)
    send(topic, "u", 1, UNCHANGED, 5)

    topic.ingest(table, on_reject="quarantine", expect=not_negative)

    assert rows_of(table) == [(1, "tea", 4)]
    assert table.inspect.rejected()["offset"].to_pylist() == [1, 2]


def test_a_deletion_is_not_checked() -> None:
    table, topic = table_of(), RawTopic()
    send(topic, "c", 1, "tea", -4)
    topic.ingest(table)
    send(topic, "d", 1)

    topic.ingest(table, expect=not_negative)

    assert rows_of(table) == []


def test_without_another_choice_reading_stops_and_says_why() -> None:
    table, topic = table_of(), RawTopic()
    send(topic, "c", 1, "tea", 4)
    topic.ingest(table)
    send(topic, "c", 2, "cup", -1)

    with pytest.raises(InvalidInputError, match=r"offset 1, .*column 'price': .*-1 is negative"):
        topic.ingest(table, expect=not_negative)

    assert rows_of(table) == [(1, "tea", 4)]


def test_a_rejected_record_is_re_ingested_if_that_is_asked_for() -> None:
    table, topic = table_of(), RawTopic()
    send(topic, "c", 1, "tea", -4)
    topic.ingest(table, on_reject="quarantine", expect=not_negative)

    reingest(table, fixes={"price": "abs(price)"})

    assert (rows_of(table), table.inspect.rejected_count()) == ([(1, "tea", 4)], 0)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["key", "no key", "append-only"])
def test_each_record_is_accepted_or_rejected_however_commits_divide_them(kind: str, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  reproducible
    options = {"write-mode": "append-only"} if kind == "append-only" else {}
    table, topic = table_of(options, key=kind == "key"), RawTopic(batch_size=chance.choice((1, 3, 100)))
    expected: dict[int, tuple[int, str, int]] = {}
    accepted = rejected = 0
    for number in range(60):
        key = chance.randrange(10) if kind == "key" else number
        price = chance.randint(-3, 9)
        send(topic, "c", key, "tea", price)
        if price < 0:
            rejected += 1
        else:
            accepted += 1
            expected[key] = (key, "tea", price)
        if chance.random() < 0.1:
            topic.ingest(
                table, on_reject="quarantine", expect=not_negative, rows_per_commit=chance.choice((1, 7, 1000))
            )

    topic.ingest(table, on_reject="quarantine", expect=not_negative)

    assert (rows_of(table), table.inspect.rejected_count()) == (sorted(expected.values()), rejected)
    assert accepted + rejected == 60


@pytest.mark.parametrize("seed", range(10))
def test_the_table_has_what_the_records_say_that_were_not_rejected(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  reproducible
    table, topic = table_of(), RawTopic(batch_size=chance.choice((1, 3, 100)))
    sent: list[tuple[int, str | None, int]] = []
    for _ in range(60):
        key, price = chance.randrange(4), chance.randint(-1, 9)
        item = None if chance.random() < 0.1 else chance.choice(("tea", "cup", UNCHANGED))
        send(topic, "d" if item is None else "u", key, item, price)
        sent.append((key, item, price))
        if chance.random() < 0.2:
            topic.ingest(
                table, on_reject="quarantine", expect=not_negative, rows_per_commit=chance.choice((1, 7, 1000))
            )
    topic.ingest(table, on_reject="quarantine", expect=not_negative)

    rejected = {each["offset"]: each["reason"] for each in table.inspect.rejected().to_pylist()}
    rows: dict[int, tuple[int, str, int]] = {}
    for offset, (key, item, price) in enumerate(sent):
        if offset not in rejected and item is None:
            rows.pop(key, None)
        elif offset not in rejected and item is not None:
            rows[key] = (key, rows[key][1] if item == UNCHANGED else item, price)
    assert rows_of(table) == sorted(rows.values())
    assert all("negative" in reason or "leaves out" in reason for reason in rejected.values())


@pytest.mark.parametrize(
    "answer",
    [{-1: ("price", "bad")}, {2: ("price", "bad")}, {True: ("price", "bad")}, {0: "bad"}, {0: (1, "bad")}, None],
)
def test_an_answer_that_names_no_row_or_no_reason_is_refused(answer: Any) -> None:
    table, topic = table_of(), RawTopic()
    for key in (1, 2):
        topic.tell(None, json.dumps({"op": "c", "after": {"id": key, "item": "tea", "price": 1}}).encode())

    with pytest.raises(InvalidInputError, match=r"expect\) returned .* for 2 rows; return a mapping"):
        topic.ingest(table, on_reject="quarantine", expect=lambda _: answer)

    assert table.inspect.rejected_count() == 0
