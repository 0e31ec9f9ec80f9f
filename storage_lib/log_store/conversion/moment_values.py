"""Convert dates, times of day and timestamps to columns of DATE, TIME, TIMESTAMP and TIMESTAMP_LTZ.

A value is a number of seconds and its nanoseconds. Two settings decide about values that a column can't hold:

    out of range     infinity, a year before 1 or after 9999, a time outside of a day: ``OutOfRange``
    more digits      microseconds in a TIME, which holds milliseconds: ``TimePrecision``; ``auto`` cuts off what no
                     column holds (in a TIME after milliseconds, in a timestamp after microseconds), and refuses
                     what a wider column would hold
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.log_store.conversion.value_refusals import Converted, Refused, refused, valid
from storage_lib.schema.encoding.iso_text import IsoMoments, iso_dates, iso_moments, iso_times
from storage_lib.schema.options.source_options import OUT_OF_RANGE, TIME_PRECISION, OutOfRange, TimePrecision
from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.nested_arrays import Mask

_DAY_MIN, _DAY_MAX = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31
_DAY_SECONDS, _SECOND_NANOS = 86_400, 10**9
_INFINITE_DATE = -2_147_472_692
"""What Debezium makes of PostgreSQL's date ``infinity``: it overflows 32 bits, as does ``-infinity``, a day later."""
_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}
_NANO_SECONDS_MAX = 9_223_372_035
"""Whole seconds that a timestamp in nanoseconds can count in 64 bits, in either direction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentRules:
    """How values that do not fit are converted."""

    out_of_range: OutOfRange
    time_precision: TimePrecision


def of_days(column: pa.Array, of: DataType, name: str, rules: MomentRules) -> Converted | None:
    """Convert days since 1970-01-01 (int64); None for a type other than DATE."""
    if of.root is not TypeRoot.DATE:
        return None
    return _dates(column, pc.fill_null(column, 0).to_numpy(), valid(column), name, rules)


def of_numbers(column: pa.Array, unit: str, of: DataType, name: str, rules: MomentRules) -> Converted | None:
    """Convert numbers of ``unit`` since midnight or 1970 (int64); None for a type that is no time or timestamp."""
    if of.root not in (TypeRoot.TIME, TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ):
        return None
    numbers = pc.fill_null(column, 0).to_numpy()
    seconds = numbers // _PER_SECOND[unit]
    nanos = (numbers - seconds * _PER_SECOND[unit]) * (_SECOND_NANOS // _PER_SECOND[unit])
    return _fitted(column, seconds, nanos, valid(column), of, name, rules)


def of_texts(column: pa.Array, of: DataType, name: str, rules: MomentRules) -> Converted | None:
    """Convert text as in ISO 8601; None for a type that holds no dates or times.

    A DATE, TIME or TIMESTAMP has no zone: only UTC is accepted for it. A TIMESTAMP_LTZ needs a zone.
    """
    match of.root:
        case TypeRoot.DATE:
            found = iso_dates(column)
        case TypeRoot.TIME:
            found = iso_times(column)
        case TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ:
            found = iso_moments(column)
        case _:
            return None
    has_right_zone = found.has_zone if of.root is TypeRoot.TIMESTAMP_LTZ else found.offset_seconds == 0
    is_read = found.is_valid & has_right_zone
    bad = refused(column, ~is_read & valid(column), name, f"is not {_expected(of)}")
    if of.root is TypeRoot.DATE:
        converted = _dates(column, found.days, is_read, name, rules)
    else:
        converted = _fitted(column, _seconds(found), found.nanos % _SECOND_NANOS, is_read, of, name, rules)
    return Converted(converted.array, (*bad, *converted.refusals))


def _expected(of: DataType) -> str:
    kinds = {
        TypeRoot.DATE: "a date such as 2024-05-14",
        TypeRoot.TIME: "a time of day in UTC or without zone, such as 12:00:00.123",
        TypeRoot.TIMESTAMP: "a date and time in UTC or without zone, such as 2024-05-14T12:00:00.123",
        TypeRoot.TIMESTAMP_LTZ: "a date and time with its zone, such as 2024-05-14T12:00:00.123Z",
    }
    return f"{kinds[of.root]}, which a {of.with_nullable(nullable=True)} needs"


def _seconds(found: IsoMoments) -> np.ndarray:
    seconds: np.ndarray = found.days * _DAY_SECONDS + found.nanos // _SECOND_NANOS - found.offset_seconds
    return seconds


def _dates(column: pa.Array, days: np.ndarray, is_read: Mask, name: str, rules: MomentRules) -> Converted:
    days = np.where(days == _INFINITE_DATE, _DAY_MAX + 1, days)
    is_far = is_read & ((days < _DAY_MIN) | (days > _DAY_MAX))
    values = np.clip(days, _DAY_MIN, _DAY_MAX).astype(np.int32)
    is_kept = is_read & ~is_far if rules.out_of_range is not OutOfRange.CLAMP else is_read
    array = pa.array(values, mask=~is_kept).cast(pa.date32())
    return Converted(array, _far(column, is_far, "DATE: the years 1 to 9999", name, rules))


def _fitted(
    column: pa.Array, seconds: np.ndarray, nanos: np.ndarray, is_read: Mask, of: DataType, name: str, rules: MomentRules
) -> Converted:
    arrow = of.arrow
    nanos_per_unit = _SECOND_NANOS // _PER_SECOND[arrow.unit]
    low, high, limits = _limits(of)
    is_far = is_read & ((seconds < low) | (seconds > high))
    is_inexact = is_read & ~is_far & (nanos % nanos_per_unit != 0)
    whole, parts = np.clip(seconds, low, high), nanos // nanos_per_unit
    per_second = _PER_SECOND[arrow.unit]
    parts = np.where(seconds < low, 0, np.where(seconds > high, per_second - 1, parts))
    precision = rules.time_precision
    can_be_wider = of.root is not TypeRoot.TIME and arrow.unit == "ms"
    is_refused = precision is TimePrecision.REJECT or (precision is TimePrecision.AUTO and can_be_wider)
    if precision is TimePrecision.ROUND:
        parts = parts + (is_inexact & (nanos % nanos_per_unit * 2 >= nanos_per_unit))
    values = np.minimum(whole * per_second + parts, (high + 1) * per_second - 1)
    is_kept = is_read if rules.out_of_range is OutOfRange.CLAMP else is_read & ~is_far
    is_kept = is_kept & ~is_inexact if is_refused else is_kept
    numbers = pa.array(values, mask=~is_kept)
    array = numbers.cast(pa.int32() if pa.types.is_time32(arrow) else pa.int64()).cast(arrow)
    remedy = "use a column of more digits, or set" if can_be_wider else "set"
    kind = of.with_nullable(nullable=True)
    digits = f"has more digits than {kind} holds; {remedy} {TIME_PRECISION}=truncate or round"
    refusals = _far(column, is_far, f"{kind}: {limits}", name, rules)
    return Converted(array, (*refusals, *refused(column, is_inexact & is_refused, name, digits)))


def _limits(of: DataType) -> tuple[int, int, str]:
    """Return the first and the last second that a type holds, and a description."""
    if of.root is TypeRoot.TIME:
        return 0, _DAY_SECONDS - 1, "00:00 to 24:00"
    if of.arrow.unit == "ns":
        return -_NANO_SECONDS_MAX, _NANO_SECONDS_MAX, "the years 1678 to 2262, with nanoseconds"
    return _DAY_MIN * _DAY_SECONDS, (_DAY_MAX + 1) * _DAY_SECONDS - 1, "the years 1 to 9999"


def _far(column: pa.Array, is_far: Mask, limits: str, name: str, rules: MomentRules) -> tuple[Refused, ...]:
    if rules.out_of_range is not OutOfRange.REJECT:
        return ()
    why = f"is out of the range of {limits}; set {OUT_OF_RANGE}=null or clamp to accept it"
    return refused(column, is_far, name, f"{why}, or check the source's time.precision.mode")
