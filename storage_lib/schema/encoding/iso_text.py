"""Read dates and times of ISO 8601, whole columns at a time.

Forms are ``2024-05-14``, ``12:00:00.5Z`` and ``2024-05-14T12:00:00+02:00``.

Years may have up to nine digits and a sign, a space may stand for the T, and ``infinity`` and ``-infinity``, as
PostgreSQL writes them, are days far outside of the years that any type holds. Nothing raises: ``is_valid`` is false for
other text.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

FAR_DAYS = 10**12
"""Days of infinity: later than every date of nine digits."""

_DATE = r"(?P<year>\d{4}|[+-]\d{4,9})-(?P<month>\d{2})-(?P<day>\d{2})"
_TIME = r"(?P<hour>\d{2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<fraction>\d{1,9}))?)?"
_ZONE = r"(?P<zone>Z|[+-]\d{2}:?\d{2}|[+-]\d{2})?"
_DATES, _TIMES, _MOMENTS = f"^{_DATE}{_ZONE}$", f"^{_TIME}{_ZONE}$", f"^{_DATE}[T ]{_TIME}{_ZONE}$"
_MONTH_DAYS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
_FRACTION_DIGITS = 9
_DAY_MICROS = 86_400_000_000
_DATE_LENGTH = 10
_ANY_DAY = "1970-01-01"


@dataclass(frozen=True, slots=True)
class IsoMoments:
    """Days since 1970-01-01, nanoseconds of the day, seconds east of UTC; undefined where ``is_valid`` is false."""

    days: Int64s
    nanos: Int64s
    offset_seconds: Int64s
    has_zone: Mask
    is_valid: Mask


def iso_dates(text: pa.Array) -> IsoMoments:
    """Read dates; a zone is allowed and has no effect on the days."""
    usual = _usual(pc.utf8_rtrim(text, "Z"), pa.timestamp("us"), length=_DATE_LENGTH)
    if usual is not None:
        return usual
    return _with_infinity(text, _parsed(text, _DATES, has_date=True, has_time=False))


def iso_times(text: pa.Array) -> IsoMoments:
    """Read times of day, up to 24:00:00."""
    if _are_utc(text):
        usual = _usual(pc.binary_join_element_wise(_ANY_DAY, text, "T"), pa.timestamp("us", "UTC"))
        if usual is not None:
            return usual
    return _parsed(text, _TIMES, has_date=False, has_time=True)


def iso_moments(text: pa.Array) -> IsoMoments:
    """Read dates with times."""
    if _are_utc(text):
        usual = _usual(text, pa.timestamp("us", "UTC"))
        if usual is not None:
            return usual
    return _with_infinity(text, _parsed(text, _MOMENTS, has_date=True, has_time=True))


def _are_utc(text: pa.Array) -> bool:
    return bool(pc.all(pc.ends_with(text, "Z"), min_count=0).as_py())


def _usual(text: pa.Array, arrow: pa.DataType, length: int | None = None) -> IsoMoments | None:
    """Read text of years with four digits and up to microseconds, which Arrow reads; None if there is any other."""
    if length is not None and not pc.all(pc.equal(pc.binary_length(text), length), min_count=0).as_py():
        return None
    try:
        micros = pc.fill_null(text.cast(arrow).cast(pa.int64()), 0).to_numpy()
    except pa.ArrowInvalid:
        return None
    days = micros // _DAY_MICROS
    zone = np.full(len(text), arrow.tz is not None)
    nanos = (micros - days * _DAY_MICROS) * 1_000
    return IsoMoments(days, nanos, np.zeros(len(text), np.int64), zone, _flags(text.is_valid()))


def _parsed(text: pa.Array, pattern: str, *, has_date: bool, has_time: bool) -> IsoMoments:
    parts = pc.extract_regex(text, pattern)
    is_valid = parts.is_valid().to_numpy(zero_copy_only=False)
    days = nanos = np.zeros(len(text), np.int64)
    if has_date:
        year, month, day = (_numbers(parts, name) for name in ("year", "month", "day"))
        days = _days(year, month, day)
        is_valid = is_valid & (month >= 1) & (month <= 12) & (day >= 1) & (day <= _month_length(year, month))
    if has_time:
        hour, minute, second = (_numbers(parts, name) for name in ("hour", "minute", "second"))
        fraction = pc.utf8_rpad(parts.field("fraction"), _FRACTION_DIGITS, "0")
        seconds = (hour * 60 + minute) * 60 + second
        nanos = seconds * 10**9 + _of_text(fraction)
        is_valid = is_valid & (minute < 60) & (second < 60) & (nanos <= 86_400 * 10**9)
    zone = parts.field("zone")
    return IsoMoments(days, nanos, _offsets(zone), _flags(pc.not_equal(zone, "")), is_valid)


def _with_infinity(text: pa.Array, found: IsoMoments) -> IsoMoments:
    if found.is_valid.all():
        return found
    word = pc.utf8_lower(text)
    is_future, is_past = _flags(pc.equal(word, "infinity")), _flags(pc.equal(word, "-infinity"))
    is_infinite = is_future | is_past
    return IsoMoments(
        np.where(is_future, FAR_DAYS, np.where(is_past, -FAR_DAYS, found.days)),
        np.where(is_infinite, 0, found.nanos),
        np.where(is_infinite, 0, found.offset_seconds),
        found.has_zone | is_infinite,
        found.is_valid | is_infinite,
    )


def _days(year: Int64s, month: Int64s, day: Int64s) -> Int64s:
    """Count days since 1970-01-01 in the proleptic Gregorian calendar, whose year here begins in March."""
    year = year - (month <= 2)
    era = year // 400
    year_of_era = year - era * 400
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    days: Int64s = era * 146_097 + day_of_era - 719_468
    return days


def _month_length(year: Int64s, month: Int64s) -> Int64s:
    is_leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    length: Int64s = _MONTH_DAYS[np.clip(month, 0, 12)] + (is_leap & (month == 2))
    return length


def _offsets(zone: pa.Array) -> Int64s:
    plain = pc.replace_substring(pc.utf8_replace_slice(zone, 0, 1, ""), ":", "")
    digits = _of_text(pc.utf8_rpad(plain, 4, "0"))
    seconds: Int64s = (digits // 100 * 60 + digits % 100) * 60
    return np.where(_flags(pc.starts_with(zone, "-")), -seconds, seconds)


def _numbers(parts: pa.StructArray, name: str) -> Int64s:
    return _of_text(parts.field(name))


def _of_text(digits: pa.Array) -> Int64s:
    """Read whole numbers; 0 for empty text, which a part has that is missing or does not match."""
    filled = pc.fill_null(pc.if_else(pc.equal(digits, ""), "0", digits), "0")
    numbers: Int64s = pc.utf8_ltrim(filled, "+").cast(pa.int64()).to_numpy()
    return numbers


def _flags(mask: pa.Array) -> Mask:
    flags: Mask = pc.fill_null(mask, fill_value=False).to_numpy(zero_copy_only=False)
    return flags
