"""Locations as a Hive metastore stores them."""

from __future__ import annotations


def hive_location(path: str) -> str:
    """Return the URL of an absolute path or URL."""
    return path if "://" in path else f"file://{path}"
