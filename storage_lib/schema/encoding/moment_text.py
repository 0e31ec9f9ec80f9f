"""Format moments for people and SQL."""

from __future__ import annotations

from datetime import UTC, datetime


def moment_text(epoch_millis: int) -> str:
    """Format in UTC, ``2024-05-14 12:00:00.000+00:00``; a moment that Python can't represent stays a number."""
    moment = utc_datetime(epoch_millis)
    return str(epoch_millis) if moment is None else moment.isoformat(sep=" ", timespec="milliseconds")


def utc_datetime(epoch_millis: int | None) -> datetime | None:
    """Return the moment in UTC; None for None and for a moment that Python can't represent."""
    if epoch_millis is None:
        return None
    try:
        return datetime.fromtimestamp(epoch_millis / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
