"""The demo's replay: the flights' changes, applied in order, result in the flights."""

from __future__ import annotations

from datetime import date

import polars as pl
import pyarrow as pa
import pytest

from demo_report import DemoReport
from flight_changes import changes, final_rows
from flights.nyc_flights import FLIGHT_COLUMNS, flights
from storage_lib.schema.table_schema import TableSchema, new_table_schema

FIRST, LAST = date(2013, 2, 7), date(2013, 2, 9)
KEY = ["flight_date", "time_hour", "carrier", "flight"]


@pytest.fixture(scope="module")
def schema() -> TableSchema:
    columns = pa.schema([*FLIGHT_COLUMNS.items(), ("temp", pa.float64())])
    return new_table_schema(columns, primary_keys=KEY, options={"bucket": "1"}, time_millis=0)


@pytest.fixture(scope="module")
def events(schema: TableSchema) -> pl.DataFrame:
    return changes(flights(), FIRST, LAST, schema)


def test_applied_in_order_the_changes_leave_the_flights_that_were_not_called_off(events: pl.DataFrame) -> None:
    newest = events.group_by(KEY, maintain_order=True).last()

    remaining = newest.filter(pl.col("_row_kind") != 3).select(list(FLIGHT_COLUMNS)).sort(KEY)

    expected = final_rows(flights(), FIRST, LAST).select(list(FLIGHT_COLUMNS)).sort(KEY)
    assert remaining.height > 2000
    assert remaining.equals(expected)


def test_every_flight_is_scheduled_before_it_departs_and_lands(events: pl.DataFrame) -> None:
    kinds = events.group_by(KEY, maintain_order=True).agg("_row_kind", "event_minute")

    assert events["event_minute"].is_sorted()
    # Scheduled only (cancelled, with an aircraft), scheduled and cancelled, or scheduled, departed and landed.
    assert {tuple(each) for each in kinds["_row_kind"]} == {(0,), (0, 3), (0, 2, 2)}


def test_a_column_that_the_source_lacks_is_null(events: pl.DataFrame) -> None:
    assert events["temp"].null_count() == events.height


def test_the_report_notices_an_answer_that_differs() -> None:
    agreeing = DemoReport(answers={"one": {"EWR": (3, 1.5)}, "other": {"EWR": (3, 1.5)}})
    assert agreeing.agrees
    assert "All answers agree" in agreeing.text()

    differing = DemoReport(answers={"one": {"EWR": (3, 1.5)}, "other": {"EWR": (3, 1.6)}})
    assert not differing.agrees
    assert "DIFFER" in differing.text()


def test_the_report_notices_a_row_that_is_missing() -> None:
    report = DemoReport(answers={"one": {"EWR": (3, 1.5)}}, differing_rows={"demo.flights": (1, 0)})

    assert not report.agrees
