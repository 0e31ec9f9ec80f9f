"""Options of a source of changes: the modes of the Debezium connector that writes it, and values that do not fit.

They belong to one ``ingest``, stream or sync, not to a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from storage_lib.errors import InvalidInputError

_Word = TypeVar("_Word", bound=StrEnum)

DECIMAL_MODE = "debezium.decimal-handling-mode"
TIME_MODE = "debezium.time-precision-mode"
BINARY_MODE = "debezium.binary-handling-mode"
PLACEHOLDER = "debezium.unavailable-value-placeholder"
OUT_OF_RANGE = "source.out-of-range"
TIME_PRECISION = "source.time-precision"
BEFORE_IMAGE = "source.before-image"
ON_TRUNCATE = "source.on-truncate"
ON_REJECT = "source.on-reject"
REJECT_MAX = "source.reject-max"
SCHEMA_CHANGE = "source.schema-change"
KEY_CHANGE = "source.key-change"
SKIP = "source.skip"
METADATA = "source.metadata"


class DecimalMode(StrEnum):
    """Debezium's ``decimal.handling.mode``."""

    PRECISE = "precise"
    STRING = "string"
    DOUBLE = "double"


class TimeMode(StrEnum):
    """Debezium's ``time.precision.mode``."""

    ADAPTIVE = "adaptive"
    ADAPTIVE_TIME_MICROSECONDS = "adaptive_time_microseconds"
    CONNECT = "connect"
    ISOSTRING = "isostring"
    MICROSECONDS = "microseconds"
    NANOSECONDS = "nanoseconds"


class BinaryMode(StrEnum):
    """Debezium's ``binary.handling.mode``."""

    BYTES = "bytes"
    BASE64 = "base64"
    BASE64_URL_SAFE = "base64-url-safe"
    HEX = "hex"


class OutOfRange(StrEnum):
    """Treatment of infinity, and of dates and times that no column can hold."""

    REJECT = "reject"
    NULL = "null"
    CLAMP = "clamp"


class TimePrecision(StrEnum):
    """Treatment of more fractional digits of a second than the column holds."""

    AUTO = "auto"
    TRUNCATE = "truncate"
    ROUND = "round"
    REJECT = "reject"


class BeforeImage(StrEnum):
    """Values of option ``source.before-image``."""

    AUTO = "auto"
    """The whole row if the record's connector always writes it, or if the source table has no key."""
    WHOLE = "whole"
    KEY = "key"


class OnTruncate(StrEnum):
    """Values of option ``source.on-truncate``: what a TRUNCATE of the source does."""

    FAIL = "fail"
    APPLY = "apply"
    IGNORE = "ignore"


class SchemaChangeOfSource(StrEnum):
    """Values of option ``source.schema-change``: what new columns and wider types in the schemas of records do."""

    EVOLVE = "evolve"
    FAIL = "fail"
    IGNORE = "ignore"


class KeyChange(StrEnum):
    """Values of option ``source.key-change``: what a record does whose key is not that of the table."""

    FAIL = "fail"
    IGNORE = "ignore"


class OnReject(StrEnum):
    """Values of option ``source.on-reject``: what happens with a record that can't be decoded or does not fit."""

    FAIL = "fail"
    SKIP = "skip"
    QUARANTINE = "quarantine"
    """Keep it in the table's rejected records, with the commit that passes over it."""


def word_option(options: Mapping[str, str], key: str, words: type[_Word]) -> _Word | None:
    """Return an option's word, None if it is not given; ``InvalidInputError`` for an unknown one."""
    given = options.get(key)
    try:
        return None if given is None else words(given)
    except ValueError as error:
        message = f"option {key} is {given!r}; it has to be one of {', '.join(words)}"
        raise InvalidInputError(message) from error


UNAVAILABLE_VALUE = "__debezium_unavailable_value"
"""Debezium's default for ``unavailable.value.placeholder``."""

SOURCE_OPTIONS: Mapping[str, tuple[str, str]] = {
    BEFORE_IMAGE: (
        BeforeImage.AUTO,
        (
            "What records say of a row before its change: whole (all columns), key (its key only, so that the rest is "
            "looked up in the table), or auto: key for PostgreSQL's tables with a key, whole for others. Set whole for "
            "REPLICA IDENTITY FULL if the table needs old rows."
        ),
    ),
    ON_TRUNCATE: (
        OnTruncate.FAIL,
        "A TRUNCATE of the source: fail (stop before it), apply (delete all rows of the table), or ignore.",
    ),
    SCHEMA_CHANGE: (
        "",
        (
            "A source with new columns or wider types, where records carry a schema: evolve (default of ingest: add "
            "and widen the columns first), fail (stop before the first such record), or ignore."
        ),
    ),
    KEY_CHANGE: (
        "",
        (
            "A record whose key has other columns than the table's: fail (default of sync: stop before it, since the "
            "source tells its rows apart otherwise), or ignore (default elsewhere: the table has its own key)."
        ),
    ),
    SKIP: (
        "",
        "Single records to skip, as partition:offset, such as 0:1234, 3:77; with quarantine they are kept as well.",
    ),
    METADATA: (
        "",
        (
            "Columns that are filled from metadata of records rather than from their rows, such as "
            "lsn = value.source.lsn, written = timestamp. An unknown name is refused with a list of them."
        ),
    ),
    ON_REJECT: (
        OnReject.FAIL,
        (
            "A record that can't be decoded, or does not fit the table: fail (stop before it), quarantine (keep it in "
            "<table>$rejected), or skip it with a warning."
        ),
    ),
    REJECT_MAX: (
        "",
        (
            "Rejected and skipped records above which reading stops: a share of a call's records, such as 5 %, or a "
            "number in an hour. By default any number may be rejected."
        ),
    ),
    DECIMAL_MODE: (
        DecimalMode.PRECISE,
        "The connector's decimal.handling.mode: precise, string or double. For records without a schema.",
    ),
    TIME_MODE: (
        TimeMode.ADAPTIVE,
        (
            "The connector's time.precision.mode: adaptive, adaptive_time_microseconds (MySQL's default), connect, "
            "isostring, microseconds or nanoseconds. For records without a schema."
        ),
    ),
    BINARY_MODE: (
        BinaryMode.BYTES,
        (
            "The connector's binary.handling.mode: bytes, base64, base64-url-safe or hex. Also for records with a "
            "schema, which does not say how text stands for bytes."
        ),
    ),
    PLACEHOLDER: (
        UNAVAILABLE_VALUE,
        "The connector's unavailable.value.placeholder, which stands for a long value that an update did not change.",
    ),
    OUT_OF_RANGE: (
        OutOfRange.REJECT,
        (
            "Dates and times that no column holds (infinity, years before 1 or after 9999, times outside of a day), "
            "and NaN and infinity in a DECIMAL: reject refuses the record, null stores null, clamp stores the nearest "
            "date or time that the column holds and refuses decimals."
        ),
    ),
    TIME_PRECISION: (
        TimePrecision.AUTO,
        (
            "More digits of a second than the column holds: truncate, round, reject (refuse the record), or auto: "
            "truncate what no column holds (after milliseconds in a TIME, after microseconds in a timestamp), and "
            "reject what a column with more digits holds."
        ),
    ),
}
"""Options of a source with their defaults and meanings, for docs/options.md."""
