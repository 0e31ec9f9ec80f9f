"""Parse and format option values: sizes (``128 mb``), durations (``7 d``), booleans, numbers, names, words."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar

_WAIT_MILLIS_MAX = 24 * 86_400_000
_BUCKETS_MAX = 32767
"""Limit of dynamic buckets, whose numbers Paimon stores in 16 bits."""
_INT_MAX = 2147483647
_NUMBER_AND_UNIT = re.compile(r"\s*(\d+)\s*([a-zA-Z]*)\s*")
_BYTES = {
    "": 1,
    "b": 1,
    "bytes": 1,
    "k": 1 << 10,
    "kb": 1 << 10,
    "m": 1 << 20,
    "mb": 1 << 20,
    "g": 1 << 30,
    "gb": 1 << 30,
}
_ZSTD_LEVEL_MAX = 22
_MILLIS = {
    "ms": 1,
    "millis": 1,
    "s": 1_000,
    "sec": 1_000,
    "min": 60_000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "day": 86_400_000,
    "days": 86_400_000,
}


def parse_bytes(text: str) -> int:
    """Parse ``128 mb`` -> 134217728; a bare number is bytes. Raises ``ValueError`` for anything else."""
    return _scaled(text, _BYTES, "a size such as '128 mb'")


def parse_size(text: str) -> int:
    """Parse a size of at least 1 byte, as ``parse_bytes`` does. Raises ``ValueError`` for anything else."""
    size = parse_bytes(text)
    if size < 1:
        message = "it has to be at least 1 byte"
        raise ValueError(message)
    return size


def parse_by_level(text: str) -> dict[int, str]:
    """Parse ``0:avro,5:parquet`` -> {0: "avro", 5: "parquet"}. Raises ``ValueError``, also for a duplicate level."""
    found: dict[int, str] = {}
    for part in text.split(","):
        level, colon, value = (each.strip() for each in part.partition(":"))
        if not (level.isdecimal() and colon and value) or int(level) in found:
            message = "it has to be levels and values such as '0:avro,5:parquet', each level once"
            raise ValueError(message)
        found[int(level)] = value
    return found


def parse_millis(text: str) -> int:
    """Parse ``7 d`` -> 604800000; the unit is required. Raises ``ValueError`` for anything else."""
    return _scaled(text, _MILLIS, "a duration such as '30 s', '10 min' or '7 d'")


def parse_wait(text: str) -> int:
    """Parse a duration of 1 ms to 24 d, which protocols send in 32 bits. Raises ``ValueError`` for anything else."""
    millis = parse_millis(text)
    if not 1 <= millis <= _WAIT_MILLIS_MAX:
        message = "it has to be at least '1 ms' and at most '24 d'"
        raise ValueError(message)
    return millis


def parse_retention(text: str) -> int:
    """Parse a duration of at least 1 ms that fits into 64 bits. Raises ``ValueError`` for anything else."""
    millis = parse_millis(text)
    if not 1 <= millis < 1 << 63:
        message = "it has to be at least '1 ms', and at most 106751991167 d"
        raise ValueError(message)
    return millis


def spelled_bytes(count: int) -> str:
    """Format 134217728 as ``128 mb`` for ``parse_bytes``, in the largest unit without a fraction."""
    return _spelled(count, _BYTES, ("gb", "mb", "kb", "b"))


def spelled_millis(count: int) -> str:
    """Format 604800000 as ``7 d`` for ``parse_millis``, in the largest unit without a fraction."""
    return _spelled(count, _MILLIS, ("d", "h", "min", "s", "ms"))


def parse_boolean(text: str) -> bool:
    """Parse ``true`` or ``false``, ignoring case. Raises ``ValueError`` for anything else."""
    word = text.strip().lower()
    if word not in ("true", "false"):
        message = "it has to be true or false"
        raise ValueError(message)
    return word == "true"


def parse_integer(text: str) -> int:
    """Parse a whole number. Raises ``ValueError`` for anything else."""
    try:
        return int(text)
    except ValueError:
        message = "it has to be a whole number"
        raise ValueError(message) from None


def parse_count(text: str) -> int:
    """Parse a whole number of at least 1. Raises ``ValueError`` for anything else."""
    return _at_least(1, text)


def parse_number(text: str) -> int:
    """Parse a whole number of at least 0. Raises ``ValueError`` for anything else."""
    return _at_least(0, text)


def parse_moment(text: str) -> int:
    """Parse epoch milliseconds from 0 to 2^63 - 1. Raises ``ValueError`` for anything else."""
    millis = parse_integer(text)
    if not 0 <= millis < 1 << 63:
        message = "it has to be milliseconds since 1970, such as 1715648523456"
        raise ValueError(message)
    return millis


def parse_replication(text: str) -> int:
    """Parse a number of at least 1, or -1 for the brokers' default. Raises ``ValueError`` for anything else."""
    number = parse_integer(text)
    if number != -1 and not 1 <= number < 1 << 15:
        message = "it has to be at least 1, or -1 for the brokers' default"
        raise ValueError(message)
    return number


def parse_level_count(text: str) -> int:
    """Parse a number of at least 2: level 0 and one to compact into. Raises ``ValueError`` for anything else."""
    return _at_least(2, text)


def parse_zstd_level(text: str) -> int:
    """Parse a whole number from 1 to 22. Raises ``ValueError`` for anything else."""
    number = parse_integer(text)
    if not 1 <= number <= _ZSTD_LEVEL_MAX:
        message = f"it has to be 1 to {_ZSTD_LEVEL_MAX}"
        raise ValueError(message)
    return number


def parse_directory_name(text: str) -> str:
    """Return a directory name unchanged. Raises ``ValueError`` if it is blank, ``.`` or ``..``, or has a slash."""
    if text.strip() in ("", ".", "..") or "/" in text:
        message = "it has to be the name of one directory"
        raise ValueError(message)
    return text


def parse_bucket_count(text: str) -> int:
    """Parse a number of at least 1, or -1 or -2, which mean that buckets are not fixed. Raises ``ValueError``."""
    number = parse_integer(text)
    if number < -2 or number == 0:
        message = "it has to be at least 1, or -1 for none in particular"
        raise ValueError(message)
    if number > _INT_MAX:
        message = f"it has to be at most {_INT_MAX}, the largest number that the format has for a bucket"
        raise ValueError(message)
    return number


def parse_bucket_limit(text: str) -> int:
    """Parse a number of at least 1, or -1 for no limit. Raises ``ValueError`` for anything else."""
    number = parse_integer(text)
    if number != -1 and not 1 <= number <= _BUCKETS_MAX:
        message = f"it has to be from 1 to {_BUCKETS_MAX}, or -1 for no limit"
        raise ValueError(message)
    return number


def parse_text(text: str) -> str:
    """Return the text, stripped. Raises ``ValueError`` if it is blank."""
    if not text.strip():
        message = "it may not be empty"
        raise ValueError(message)
    return text.strip()


def parse_names(text: str) -> tuple[str, ...]:
    """Parse ``a, b`` -> ("a", "b"). Raises ``ValueError`` for no names, an empty name or a duplicate."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len(set(names)) < len(names):
        message = "it has to be names of columns, separated by commas, each once"
        raise ValueError(message)
    return names


_Word = TypeVar("_Word", bound=StrEnum)


def parse_word(words: type[_Word]) -> Callable[[str], _Word]:
    """Return a parser for the values of an enumeration."""

    def parse(text: str) -> _Word:
        try:
            return words(text.strip().lower())
        except ValueError:
            message = f"it has to be one of {', '.join(words)}"
            raise ValueError(message) from None

    return parse


def _at_least(least: int, text: str) -> int:
    number = parse_integer(text)
    if number < least:
        message = f"it has to be at least {least}"
        raise ValueError(message)
    return number


def _scaled(text: str, units: dict[str, int], wanted: str) -> int:
    match = _NUMBER_AND_UNIT.fullmatch(text)
    if match is None or match[2].lower() not in units:
        message = f"it has to be {wanted}"
        raise ValueError(message)
    return int(match[1]) * units[match[2].lower()]


def _spelled(count: int, units: dict[str, int], largest_first: tuple[str, ...]) -> str:
    unit = next(each for each in largest_first if count % units[each] == 0)
    return f"{count // units[unit]} {unit}"
