"""Range of DATE, TIME and TIMESTAMP values that other readers of a table can represent.

Arrow stores a day or an instant as an integer and accepts any. Python, Spark, Flink and SQL end at the years 1 and
9999, and a time ends after a day.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

_DAY_MIN, _DAY_MAX = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31
_SECONDS_PER_DAY = 86_400
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfRange:
    """A value that is out of range: ``row`` counts from 0; ``value``, ``low`` and ``high`` are in ``unit``."""

    place: str
    row: int
    value: int
    low: int
    high: int
    unit: str
    meaning: str


def find_out_of_range(array: pa.Array, place: str) -> OutOfRange | None:
    """Return the first value out of range in ``array`` or nested in it; None if all are in range.

    Costs one pass for minimum and maximum of each array of dates, times or timestamps.
    """
    if not holds_moments(array.type):
        return None
    if pa.types.is_struct(array.type):
        for index, child in enumerate(array.flatten()):
            found = find_out_of_range(child, f"{place}.{array.type.field(index).name}")
            if found is not None:
                return found
        return None
    if pa.types.is_map(array.type):
        entries = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
        return _in_rows(find_out_of_range(entries.flatten(), place), entries)
    if _is_list(array.type):
        return _in_rows(find_out_of_range(array.flatten(), f"{place}.element"), array)
    return _of_scalars(array, place)


def holds_moments(type_: pa.DataType) -> bool:
    """Return whether a type is a date, time or timestamp type, or contains one."""
    if pa.types.is_struct(type_):
        return any(holds_moments(type_.field(index).type) for index in range(type_.num_fields))
    if pa.types.is_map(type_):
        return holds_moments(type_.key_type) or holds_moments(type_.item_type)
    if _is_list(type_):
        return holds_moments(type_.value_type)
    return bool(pa.types.is_date32(type_) or pa.types.is_time(type_) or pa.types.is_timestamp(type_))


def _in_rows(found: OutOfRange | None, lists: pa.Array) -> OutOfRange | None:
    return None if found is None else replace(found, row=pc.list_parent_indices(lists)[found.row].as_py())


def _of_scalars(array: pa.Array, place: str) -> OutOfRange | None:
    low, high, unit, meaning = _limits(array.type)
    if low <= -_INT64_MAX:
        return None  # the type holds no other values
    numbers = array.view(pa.int32() if array.type.bit_width == pa.int32().bit_width else pa.int64())
    bounds = pc.min_max(numbers)
    least, greatest = bounds["min"].as_py(), bounds["max"].as_py()
    if least is None or (low <= least and greatest <= high):
        return None
    is_outside = pc.fill_null(pc.or_(pc.less(numbers, low), pc.greater(numbers, high)), fill_value=False)
    row = pc.index(is_outside, value=True).as_py()
    return OutOfRange(place=place, row=row, value=numbers[row].as_py(), low=low, high=high, unit=unit, meaning=meaning)


def _limits(type_: pa.DataType) -> tuple[int, int, str, str]:
    years = "years 1 to 9999"
    if pa.types.is_date32(type_):
        return _DAY_MIN, _DAY_MAX, "days since 1970-01-01", years
    per_second = _PER_SECOND[type_.unit]
    if pa.types.is_time(type_):
        return 0, _SECONDS_PER_DAY * per_second - 1, f"{type_.unit} since midnight", "00:00 to 24:00"
    low, high = (day * _SECONDS_PER_DAY * per_second for day in (_DAY_MIN, _DAY_MAX + 1))
    return max(low, -_INT64_MAX), min(high - 1, _INT64_MAX), f"{type_.unit} since 1970-01-01T00:00", years


def _is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))
