"""Identifiers, texts and keys of groups in DuckDB's words."""

from __future__ import annotations

__all__ = ["grouped", "identifier", "literal"]


def identifier(name: str) -> str:
    """Return an identifier in quotes: DuckDB has other reserved words than Spark."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: str) -> str:
    """Return a text as a literal."""
    return "'" + value.replace("'", "''") + "'"


def grouped(double: str) -> str:
    """Return a DOUBLE to group by, whose -0.0 is 0.0 as in Spark."""
    return f"(CASE WHEN {double} = 0 THEN CAST(0 AS DOUBLE) ELSE {double} END)"
