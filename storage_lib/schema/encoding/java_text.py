"""Format values as Java does, because other engines name partition directories so and we must find them."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import numpy as np

_NOT_JAVA_SPACE = "\u00a0\u2007\u202f\u0085"
_SCIENTIFIC_FROM = 7
_SCIENTIFIC_BELOW = -3


def is_blank(text: str) -> bool:
    """Whether the text is empty or white space by Java's definition."""
    return all(letter.isspace() and letter not in _NOT_JAVA_SPACE for letter in text)


def java_float(value: float, *, single: bool) -> str:
    """Format as ``Float.toString`` or ``Double.toString``: 1.5, 1.0E10, 1.0E-5."""
    if not np.isfinite(value):
        return "NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    shortest = str(np.float32(value)) if single else repr(float(value))
    sign, digits, exponent = Decimal(shortest).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    if text == "0":
        return "-0.0" if sign else "0.0"
    point = len(digits) + int(exponent)  # digits before the decimal point
    prefix = "-" if sign else ""
    if _SCIENTIFIC_BELOW < point <= _SCIENTIFIC_FROM:
        if point <= 0:
            return f"{prefix}0.{'0' * -point}{text}"
        whole = text[:point].ljust(point, "0")
        return f"{prefix}{whole}.{text[point:] or '0'}"
    return f"{prefix}{text[0]}.{text[1:] or '0'}E{point - 1}"


def java_local_date_time(value: datetime) -> str:
    """Format as ``LocalDateTime.toString``, which omits zero seconds, milliseconds and microseconds."""
    text = value.strftime("%Y-%m-%dT%H:%M").rjust(16, "0")
    if not value.second and not value.microsecond:
        return text
    text += f":{value.second:02d}"
    if not value.microsecond:
        return text
    return text + (f".{value.microsecond:06d}" if value.microsecond % 1000 else f".{value.microsecond // 1000:03d}")
