"""Nexmark's queries over tables, in Spark's SQL, and those that tables can't answer."""

from __future__ import annotations

from pathlib import Path

_QUERIES = Path(__file__).parent / "nexmark_queries"

LEFT_OUT = {
    "q12": "windows of processing time: the answer depends on when a row is read, and not on the tables only",
}
"""Queries that are not among the files, and why.

The others differ from the original in form: windows are computed from times, a session is a sum over ``lag``, averages
are sums and counts, a UDF is a function of Spark's, and a sink of files (q10) is a table.
"""


def nexmark_queries() -> dict[str, str]:
    """Return the queries by name."""
    return {path.stem: path.read_text() for path in sorted(_QUERIES.glob("q*.sql"))}
