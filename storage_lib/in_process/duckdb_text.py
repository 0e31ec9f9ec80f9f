"""Identifiers and texts of DuckDB."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Return an identifier in quotes."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Return a text as a literal."""
    return "'" + value.replace("'", "''") + "'"
