"""Points in time as callers specify them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from storage_lib.errors import InvalidInputError

Moment: TypeAlias = datetime | str | int
"""A ``datetime`` with a time zone, ISO 8601 text with an offset (``2024-05-14T12:00:00Z``), or epoch milliseconds."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_DAY_ONLY = re.compile(r"\d{4}-?\d{2}-?\d{2}")


def epoch_millis(moment: Moment, name: str) -> int:
    """Return milliseconds since 1970, rounded down; ``name`` is the parameter's name for errors.

    Raises ``InvalidInputError`` for text that is not ISO 8601, and for a time without a time zone: its meaning would
    depend on the machine.
    """
    if isinstance(moment, int) and not isinstance(moment, bool):
        return moment
    if isinstance(moment, str):
        parsed = _parsed(moment, name)
    elif isinstance(moment, datetime):
        parsed = moment
    else:
        message = (
            f"{name} is {moment!r}, of type {type(moment).__name__}; give a datetime with a time zone, ISO 8601 text "
            "or milliseconds since 1970"
        )
        raise InvalidInputError(message)
    if parsed.utcoffset() is None:
        message = f"{name} is {str(moment)!r}, which has no time zone; {_with_zone(moment)}"
        raise InvalidInputError(message)
    return (parsed - _EPOCH) // _MILLISECOND


def optional_millis(moment: Moment | None, name: str) -> int | None:
    """Convert an optional parameter as ``epoch_millis`` does; None stays None."""
    return None if moment is None else epoch_millis(moment, name)


def _parsed(text: str, name: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError as error:
        hint = "; milliseconds since 1970 are an int" if text.strip().lstrip("-").isdecimal() else ""
        message = f"{name} is {text!r}; give ISO 8601 text such as '2024-05-14T12:00:00Z'{hint}"
        raise InvalidInputError(message) from error


def _with_zone(moment: str | datetime) -> str:
    if isinstance(moment, datetime):
        return "pass one with tzinfo, such as datetime(2024, 5, 14, 12, tzinfo=timezone.utc)"
    time = "T00:00" if _DAY_ONLY.fullmatch(moment.strip()) else ""
    return f"write {moment.strip() + time + 'Z'!r} for UTC, or another offset"
