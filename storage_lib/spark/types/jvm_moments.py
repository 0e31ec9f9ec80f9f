"""Dates, times and timestamps as debezium-json encodes them, computed in Spark's JVM.

Every expression is independent of the session's time zone: Spark's own conversions between TIMESTAMP and TIMESTAMP_NTZ
would move or merge local times at a change of the clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from storage_lib.spark.types.refused_rows import refused_if

if TYPE_CHECKING:
    from pyspark.sql import Column

    from storage_lib.schema.types.data_types import DataType

_MILLIS_DIGITS, _MICROS_DIGITS = 3, 6
_MICROS_PER_MILLI, _NANOS_PER_MICRO = 1_000, 1_000
_MICROS_PER_SECOND, _SECONDS_PER_MINUTE, _SECONDS_PER_HOUR, _SECONDS_PER_DAY = 1_000_000, 60, 3_600, 86_400
_DAY_MIN, _DAY_MAX = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31
_MICROS_MIN = _DAY_MIN * _SECONDS_PER_DAY * _MICROS_PER_SECOND
_MICROS_MAX = (_DAY_MAX + 1) * _SECONDS_PER_DAY * _MICROS_PER_SECOND - 1
_NANO_MICROS_MAX = 9_223_372_036_000_000
"""Largest distance from 1970 in microseconds, in whole seconds, that 64 bits hold in nanoseconds."""


def days(date: Column, place: str) -> Column:
    """Return the days since 1970-01-01 (int)."""
    found = sql.unix_date(date)
    return _in_range(found, found, _DAY_MIN, _DAY_MAX, f"{place} takes dates of the years 1 to 9999")


def time_of_day(time: Column, of: DataType, place: str) -> Column:
    """Return the time of day: milliseconds up to precision 3, else microseconds. Stored times are milliseconds."""
    micros = _whole_millis(sql.call_function("time_to_micros", time), f"{place} stores milliseconds")
    return _divided(micros, _MICROS_PER_MILLI) if (of.precision or 0) <= _MILLIS_DIGITS else micros


def epoch(timestamp: Column, of: DataType, place: str) -> Column:
    """Return a TIMESTAMP_NTZ since 1970 (bigint): in ms up to precision 3, microseconds up to 6, else nanoseconds."""
    second = (sql.extract(sql.lit("SECOND"), timestamp) * sql.lit(_MICROS_PER_SECOND)).cast("bigint")
    minutes = sql.hour(timestamp) * sql.lit(_SECONDS_PER_HOUR) + sql.minute(timestamp) * sql.lit(_SECONDS_PER_MINUTE)
    seconds = sql.unix_date(timestamp.cast("date")).cast("bigint") * sql.lit(_SECONDS_PER_DAY) + minutes
    micros = _checked(seconds * sql.lit(_MICROS_PER_SECOND) + second, of, place)
    precision = of.precision or 0
    if precision <= _MILLIS_DIGITS:
        return _divided(micros, _MICROS_PER_MILLI)
    return micros if precision <= _MICROS_DIGITS else micros * sql.lit(_NANOS_PER_MICRO)


def iso_text(timestamp: Column, of: DataType, place: str) -> Column:
    """Return a TIMESTAMP as ISO 8601 in UTC, with three, six or nine digits of the second."""
    micros = _checked(sql.unix_micros(timestamp), of, place)
    fraction = sql.pmod(micros, sql.lit(_MICROS_PER_SECOND))
    seconds = _divided(micros - fraction, _MICROS_PER_SECOND)
    second_of_day = sql.pmod(seconds, sql.lit(_SECONDS_PER_DAY))
    day = _divided(seconds - second_of_day, _SECONDS_PER_DAY).cast("int")
    hour = _divided(second_of_day, _SECONDS_PER_HOUR)
    minute = sql.pmod(_divided(second_of_day, _SECONDS_PER_MINUTE), sql.lit(60))
    second = sql.pmod(second_of_day, sql.lit(60))
    precision = of.precision or 0
    if precision <= _MILLIS_DIGITS:
        digits = _padded(_divided(fraction, _MICROS_PER_MILLI), _MILLIS_DIGITS)
    else:
        digits = _padded(fraction, _MICROS_DIGITS)
    end = sql.lit("Z" if precision <= _MICROS_DIGITS else "000Z")
    clock = [_padded(hour, 2), sql.lit(":"), _padded(minute, 2), sql.lit(":"), _padded(second, 2)]
    return sql.concat(sql.date_from_unix_date(day).cast("string"), sql.lit("T"), *clock, sql.lit("."), digits, end)


def _checked(micros: Column, of: DataType, place: str) -> Column:
    precision = of.precision or 0
    if precision <= _MILLIS_DIGITS:
        micros = _whole_millis(micros, f"{place} stores milliseconds")
    if precision > _MICROS_DIGITS:
        years = f"{place} takes times from 1677-09-21T00:12:44Z to 2262-04-11T23:47:16Z"
        return _in_range(micros, micros, -_NANO_MICROS_MAX, _NANO_MICROS_MAX, years)
    return _in_range(micros, micros, _MICROS_MIN, _MICROS_MAX, f"{place} takes times of the years 1 to 9999")


def _in_range(value: Column, number: Column, low: int, high: int, meaning: str) -> Column:
    is_outside = (number < sql.lit(low)) | (number > sql.lit(high))
    return refused_if(is_outside, value, f"{meaning}, and a row has another value. Filter such rows out")


def _whole_millis(micros: Column, meaning: str) -> Column:
    is_finer = sql.pmod(micros, sql.lit(_MICROS_PER_MILLI)) != sql.lit(0)
    return refused_if(is_finer, micros, f"{meaning}, and a row has microseconds. Truncate the value (date_trunc)")


def _divided(number: Column, divisor: int) -> Column:
    return sql.call_function("div", number, sql.lit(divisor))


def _padded(number: Column, digits: int) -> Column:
    return sql.lpad(number.cast("string"), digits, "0")
