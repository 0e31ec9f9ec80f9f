"""What the model of a followed table allows: the games trust it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from tests.cdc.debezium_modes import MODES
from tests.cdc.expected_rows import DifferenceError, Event, ExpectedRows, Following, same

SHAPE = {"id": "INT", "item": "STRING"}


def event(shape: dict[str, str], key: int, **values: object) -> Event:
    return Event(names=("id",), shape=shape, old=None, new={"id": key, **values})


def test_a_column_that_only_a_refused_record_has_may_be_missing_until_another_has_it() -> None:
    expected = ExpectedRows(Following(on_reject="quarantine"))
    wider = {**SHAPE, "item": "BYTES", "price": "INT"}
    expected.apply(event(SHAPE, 1, item="tea"))
    expected.apply(event(wider, 2, item=b"tea", price=1))

    expected.check([{"id": 1, "item": "tea"}], is_whole=False)
    expected.apply(event({**SHAPE, "price": "INT"}, 3, item="cup", price=2))
    with pytest.raises(DifferenceError, match="columns"):
        expected.check([{"id": 1, "item": "tea"}, {"id": 3, "item": "cup"}], is_whole=False)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("2026-01-21Z", dt.date(2026, 1, 21)),
        ("2026-01-21T08:00:00Z", dt.datetime(2026, 1, 21, 8, tzinfo=dt.UTC)),
        ("08:00:00.5Z", dt.time(8, 0, 0, 500_000)),
        ("0.0000000001", Decimal("1E-10")),
        (Decimal("2.50"), "2.5"),
    ],
)
def test_a_text_of_a_mode_is_the_value_that_it_spells(ours: object, theirs: object) -> None:
    assert same(ours, theirs)
    assert not same("tea", theirs)


def test_rows_without_a_key_are_the_same_in_each_spelling_of_long_numbers() -> None:
    expected = ExpectedRows(Following())
    number = Decimal("6670420143288140008548550743.0875835584")
    expected.apply(Event(names=(), shape={"n": "STRING"}, old=None, new={"n": number}))

    expected.check([{"n": str(number)}], is_whole=True)
    with pytest.raises(DifferenceError):
        expected.check([{"n": "6670420143288140008548550743.0875835585"}], is_whole=True)


def test_a_table_without_a_key_lacks_the_columns_that_it_ignores() -> None:
    expected = ExpectedRows(Following(schema_change="ignore"))
    expected.apply(Event(names=(), shape={"n": "INT"}, old=None, new={"n": 1}))
    expected.apply(Event(names=(), shape={"n": "INT", "m": "INT"}, old={"n": 1, "m": None}, new={"n": 2, "m": 3}))

    expected.check([{"n": 2}], is_whole=True)


def test_a_row_that_came_under_another_name_of_a_table_without_a_key_is_taken_back_once() -> None:
    """PostgreSQL renames a table twice; what it changed in between is in another topic."""
    expected = ExpectedRows(Following())
    expected.apply(Event(names=(), shape={"n": "INT"}, old=None, new={"n": 1}))
    expected.apply(Event(names=(), shape={"n": "INT"}, old={"n": 2}, new={"n": 3}))
    expected.check([{"n": 1}, {"n": 3}], is_whole=True)

    expected.apply(Event(names=(), shape={"n": "INT"}, old=None, new={"n": 2}))

    expected.check([{"n": 1}, {"n": 3}], is_whole=True)


def test_a_number_that_is_sent_as_a_text_does_not_become_wider() -> None:
    narrow, wide = ({"id": "INT", "price": f"DECIMAL({of})"} for of in ("10, 2", "38, 10"))
    as_text = ExpectedRows(Following(schema_change="fail"), MODES["json-schema-as-text"].sent_types)
    as_number = ExpectedRows(Following(schema_change="fail"), MODES["json-schema"].sent_types)

    for expected in (as_text, as_number):
        expected.apply(event(narrow, 1, price="1.00"))
        expected.apply(event(wide, 1, price="2.00"))

    assert as_text.must_stop is None
    assert as_number.must_stop == "writes column"
