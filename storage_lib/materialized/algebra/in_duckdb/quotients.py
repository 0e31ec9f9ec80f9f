"""Quotients of decimals, rounded half up: DuckDB divides them as floating-point numbers, and whole numbers exactly.

Spark rounds to 39 digits after the point, then to the scale of the result. A quotient of numbers of up to 30 digits is
not so near to the middle of two results that this would matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.materialized.algebra.in_duckdb.not_exact import NotExactError

if TYPE_CHECKING:
    from storage_lib.materialized.algebra.in_duckdb.value_type import ValueType

__all__ = ["quotient"]

_STEP = 5 * 10**7
_TEXT_MAX = 50_000
"""Length of the text of a quotient, in which both numbers occur several times."""


def quotient(left: str, left_scale: int, right: str, right_scale: int, to: ValueType) -> str:
    """Return ``left / right`` as a decimal; an error for numbers that are too long, and for a divisor of 0.

    Raises ``NotExactError`` for quotients inside of quotients.
    """
    shift = to.scale - left_scale + right_scale
    dividend = f"{_unscaled(left, left_scale)} * {_power(max(shift, 0))}"
    divisor = f"{_unscaled(right, right_scale)} * {_power(max(-shift, 0))}"
    return f"CAST({_rounded(dividend, divisor)} * CAST('{_unit(to.scale)}' AS DECIMAL(38,{to.scale})) AS {to.duckdb})"


def _rounded(dividend: str, divisor: str) -> str:
    """Return the quotient of two integers as DECIMAL(38,0): the one nearest to it, of two the one farther from 0."""
    a, b = f"({dividend})", f"({divisor})"
    # Twice the divisor, and an overflow if it has more than 30 digits.
    twice = f"(abs({b}) * {_huge(2 * _STEP)} // {_huge(_STEP)})"
    text = f"CAST((sign({a}) * sign({b}) * ((2 * abs({a}) + abs({b})) // {twice})) AS DECIMAL(38,0))"
    if len(text) > _TEXT_MAX:
        raise NotExactError("quotients of quotients")
    return text


def _unscaled(value: str, scale: int) -> str:
    return f"CAST({value} * CAST('{10**scale}' AS DECIMAL({scale + 1},0)) AS HUGEINT)"


def _power(exponent: int) -> str:
    return _huge(10**exponent)


def _huge(number: int) -> str:
    return f"CAST('{number}' AS HUGEINT)"


def _unit(scale: int) -> str:
    return f"0.{'1'.zfill(scale)}" if scale else "1"
