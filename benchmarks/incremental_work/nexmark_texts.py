"""Nexmark's queries over tables, in Spark's SQL and in Flink's, and those that tables can't answer."""

from __future__ import annotations

from pathlib import Path

import sqlglot
from sqlglot import exp

_QUERIES = Path(__file__).parent / "nexmark_queries"

LEFT_OUT = {
    "q12": "windows of processing time: the answer depends on when a row is read, and not on the tables only",
}
"""Queries that are not among the files, and why.

The others differ from the original in form: windows are computed from times, a session is a sum over ``lag``, averages
are sums and counts, a UDF is a function of Spark's, and a sink of files (q10) is a table.
"""
KEYS = {
    "q04": ("category",),
    "q05": ("auction", "starts"),
    "q08": ("id", "period"),
    "q11": ("bidder", "session"),
    "q15": ("day",),
    "q16": ("channel", "day"),
    "q17": ("auction", "day"),
    "q19": ("auction", "place"),
}
"""Keys of the answers by query, where the key is not ``id``. Flink writes into tables with a key."""

LOSE_ROWS = frozenset({"q05", "q07", "q19"})
"""Queries that compare rows with others, so that an update of one row removes another from the answer."""


def nexmark_queries() -> dict[str, str]:
    """Return the queries by name."""
    return {path.stem: path.read_text() for path in sorted(_QUERIES.glob("q*.sql"))}


def tables_in(text: str) -> frozenset[str]:
    """Return the names of the tables that a query reads."""
    query = sqlglot.parse_one(text, read="spark")
    names = {each.name for each in query.find_all(exp.Table)}
    return frozenset(names - {each.alias for each in query.find_all(exp.CTE)})


def in_flink_sql(text: str) -> str:
    """Return a query in Flink's SQL: all names quoted, and three functions as they are written there."""

    def translate(node: exp.Expr) -> exp.Expr:
        match node:
            case exp.SplitPart(this=value, args={"delimiter": delimiter, "part_index": place}):
                return exp.func("SPLIT_INDEX", value, delimiter, exp.Literal.number(int(place.name) - 1))
            case exp.RegexpExtract(this=value, expression=pattern):
                # Without a number, Spark returns the first group, and Flink the whole match.
                return exp.Anonymous(this="REGEXP_EXTRACT", expressions=[value, pattern, exp.Literal.number(1)])
            case exp.Length(this=value):
                return exp.Anonymous(this="CHAR_LENGTH", expressions=[value])
            case _:
                return node

    return sqlglot.parse_one(text, read="spark").transform(translate).sql("spark", identify=True)
