"""Source of the example: one day of flights with the weather."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import pyarrow.compute as pc

from flights.nyc_flights import FLIGHT_COLUMNS, WEATHER_COLUMNS, flights, flights_of_day
from provision_dynamic_table import FLIGHT_COLUMNS as TABLE_COLUMNS
from storage_lib import SetOption, open_catalog
from storage_lib.schema.types.data_types import parse_data_type


def test_a_day_has_its_flights_with_their_weather() -> None:
    rows = flights_of_day({"flight_date": "2013-01-01"})

    assert rows.num_rows == 842
    assert set(rows["flight_date"].to_pylist()) == {date(2013, 1, 1)}
    first = rows.slice(0, 1).to_pylist()[0]
    assert (first["carrier"], first["flight"], first["origin"]) == ("AA", 1141, "JFK")
    assert (first["time_hour"], first["temp"]) == (datetime.fromisoformat("2013-01-01T10:00"), 39.02)


def test_a_repeated_hour_of_weather_does_not_repeat_flights() -> None:
    rows = flights_of_day({"flight_date": "2013-11-03"})

    assert rows.num_rows == flights().filter(pc.field("flight_date") == date(2013, 11, 3)).num_rows


def test_a_day_outside_the_data_has_no_flights() -> None:
    assert flights_of_day({"flight_date": "2020-02-02"}).num_rows == 0


def test_the_key_is_a_key() -> None:
    keys = ["flight_date", "time_hour", "carrier", "flight"]

    assert flights().group_by(keys).aggregate([]).num_rows == flights().num_rows == 336_776


def test_the_form_that_provisions_the_table_has_the_same_columns() -> None:
    provisioned = {name: parse_data_type(text).arrow for name, text in TABLE_COLUMNS.items()}

    assert list(provisioned.items()) == [*FLIGHT_COLUMNS.items(), *WEATHER_COLUMNS.items()]


def test_the_table_of_the_demo_may_have_an_iceberg_view(tmp_path: Path) -> None:
    catalog = open_catalog(str(tmp_path))
    rows, key = flights().slice(0, 9), ["flight_date", "time_hour", "carrier", "flight"]
    table = catalog.create_table("demo.flights", rows.schema, primary_key=key, options={"bucket": "1"})
    table.append(rows)

    table.alter(SetOption("metadata.iceberg.storage", "table-location"))

    assert list(tmp_path.glob("demo.db/flights/metadata/*.metadata.json"))
