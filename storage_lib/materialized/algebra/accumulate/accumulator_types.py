"""Types of accumulators, and why the types of a query may rule them out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["ItemTypes", "inexact_reason", "sum_type"]

_INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "integer": 10, "bigint": 19}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_LONGEST = 38
_WEIGHT_DIGITS = 19
"""Digits of a weight, which is a BIGINT."""

_SCALE_KEPT = 6
"""Up to this scale, Spark rounds no product of decimals, however many digits it has."""

_AVERAGED_DIGITS = 15
"""Digits up to which dividing sum by count in Spark SQL gives the same digits as AVG of a DECIMAL.

Spark's AVG rounds once, to four digits more than the argument has. A quotient of decimals has at least ``28 - digits +
scale`` digits after the point and is rounded again to those of AVG. Both agree unless a group has 10 ** (24 - digits)
rows or more.
"""


@dataclass(frozen=True, slots=True)
class ItemTypes:
    """Types of one aggregate's argument and of its value, in the engine's words."""

    argument: str
    value: str


def sum_type(argument: str) -> str | None:
    """Return the type of the sum of an argument of this type; None for a type whose sums are not exact."""
    kind = argument.lower()
    if kind in _INTEGERS:
        return f"DECIMAL({_LONGEST},0)"
    found = _DECIMAL.fullmatch(kind)
    if found is None:
        return None
    digits, scale = int(found[1]), int(found[2])
    if scale > _SCALE_KEPT and digits + _WEIGHT_DIGITS + 1 > _LONGEST:
        return None
    return f"DECIMAL({_LONGEST},{scale})"


def factor_type(argument: str) -> str:
    """Return the type as which an argument is multiplied by a weight, without rounding and overflow."""
    return "DECIMAL(19,0)" if argument.lower() in _INTEGERS else argument


def averaged_sum_type(argument: str) -> str | None:
    """Return the type of the sum that AVG of an argument divides: DOUBLE for integers; None if it is not exact."""
    kind = argument.lower()
    if kind in _INTEGERS:
        return None if kind == "bigint" else "DOUBLE"
    found = _DECIMAL.fullmatch(kind)
    if found is None or int(found[1]) > _AVERAGED_DIGITS:
        return None
    return f"DECIMAL({int(found[1]) + 10},{found[2]})"


def inexact_reason(sums: Mapping[str, ItemTypes], averages: Mapping[str, ItemTypes]) -> str | None:
    """Return why accumulators would not give the digits of SUM and AVG; None if they do. Keys are for messages."""
    for name, types in sums.items():
        if sum_type(types.argument) is None:
            return f"the sums of {name} {types.argument.upper()} are not exact"
    for name, types in averages.items():
        if sum_type(types.argument) is None or averaged_sum_type(types.argument) is None:
            return f"the averages of {name} {types.argument.upper()} are not exact"
    return None
