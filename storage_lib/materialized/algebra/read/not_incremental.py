"""A part of a query for which no rule is known."""

from __future__ import annotations


class NotIncrementalError(Exception):
    """The query can only be computed in full; the message says which part of it is the reason."""
