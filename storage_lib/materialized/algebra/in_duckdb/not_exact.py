"""The refusal of an expression for which DuckDB might give another value than Spark."""

from __future__ import annotations

__all__ = ["NotExactError"]


class NotExactError(Exception):
    """DuckDB is not known to give Spark's value; the message says for what."""
