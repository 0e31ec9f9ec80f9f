"""A moment as people and SQL write it."""

from __future__ import annotations

from datetime import UTC, datetime


def moment_text(epoch_millis: int) -> str:
    """In UTC, ``2024-05-14 12:00:00.000+00:00``; the number where it is none of our calendar's, as others may write."""
    moment = utc_datetime(epoch_millis)
    return str(epoch_millis) if moment is None else moment.isoformat(sep=" ", timespec="milliseconds")


def utc_datetime(epoch_millis: int | None) -> datetime | None:
    """None for none, and where it is none of our calendar's."""
    if epoch_millis is None:
        return None
    try:
        return datetime.fromtimestamp(epoch_millis / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
