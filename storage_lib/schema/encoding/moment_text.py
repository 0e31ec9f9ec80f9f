"""A moment as people and SQL write it."""

from __future__ import annotations

from datetime import UTC, datetime


def moment_text(epoch_millis: int) -> str:
    """In UTC, ``2024-05-14 12:00:00.000+00:00``; the number where it is none of our calendar's, as others may write."""
    try:
        return datetime.fromtimestamp(epoch_millis / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return str(epoch_millis)
