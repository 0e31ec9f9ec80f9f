"""Moments of a source at which a refresh reads it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection
from dataclasses import dataclass

__all__ = ["RESULT", "Moment", "SourceTable", "Views", "of_one_moment"]

RESULT = ""
"""Name under which a delta reads the stored rows of the materialized table itself, at ``Moment.BEFORE``."""


class Moment(enum.Enum):
    """Content of a source before a refresh and after it, and the change between both."""

    BEFORE = "before"
    AFTER = "after"
    DELTA = "delta"


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table that a query may read.

    ``name`` is "database.table", or "catalog.database.table"; ``columns`` are pairs of a name and its type in Spark
    SQL's words, which may end with " NOT NULL"; columns of the primary key are never null.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    primary_key: tuple[str, ...] = ()


Views = Callable[[str, Moment], str]
"""Returns the relation, in SQL text, that holds the rows of a source (its name) at a moment.

A relation at ``Moment.DELTA`` has an additional column ``_weight`` BIGINT: +1 for a new row, -1 for an old one.
"""


def of_one_moment(views: Views, unchanged: Collection[str]) -> Views:
    """Return ``views`` with one relation for both moments of an unchanged source, which is planned and read once."""

    def view(name: str, moment: Moment) -> str:
        return views(name, Moment.AFTER if name in unchanged else moment)

    return view
