"""Doubled quotes in the texts of a query: ``'it''s'`` is ``it's``, but before Spark 4.1 it is ``its``.

There, two texts side by side are one. The query of a materialized table means the same in every version.
"""

from __future__ import annotations

import re

from storage_lib.spark.versions.spark_feature import SparkFeature

__all__ = ["refuse_doubled_quotes"]

_PARTS = re.compile(
    r"""
    --[^\n]* | /\*.*?\*/ | `[^`]*`                                  # not a text
    | (?P<text> (?<!\w) [rR] (?: '[^']*' | "[^"]*" )               # raw: a backslash is one
              | '(?:\\.|[^'\\])*' | "(?:\\.|[^"\\])*" )
    """,
    re.DOTALL | re.VERBOSE,
)


def refuse_doubled_quotes(table: str, query: str) -> None:
    """Raise ``InvalidInputError`` for a query of ``table`` with doubled quotes, if this Spark would leave them out."""
    end = -1
    for part in _PARTS.finditer(query):
        if part["text"] is not None:
            if part.start() == end and query[end] == query[end - 1]:
                SparkFeature.DOUBLED_QUOTES.require(
                    f"table {table}: its query", f"Write \\{query[end]} in place of {query[end] * 2}"
                )
            end = part.end()
