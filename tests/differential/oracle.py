"""Independent answer: DuckDB runs the batch query over the source's rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import duckdb
import pyarrow as pa

from tests.differential.case import (
    DETAILS,
    DETAILS_COLUMNS,
    DIMENSION,
    DIMENSION_COLUMNS,
    SOURCE,
    Case,
    Row,
)
from tests.differential.played_source import Bag, arrow_rows


class Oracle:
    """Answers any number of cases, one after the other."""

    def __init__(self) -> None:
        self._db = duckdb.connect(config={"threads": 1})
        self._db.execute("SET TimeZone = 'UTC'")
        self._case: Case | None = None

    def answer(self, case: Case, rows: Iterable[Row]) -> Bag:
        """Return the answer to the case's query for source ``rows``, in the order of the sink's columns."""
        self._know(case, arrow_rows(case.source.columns, list(rows)))
        return Counter(self._db.execute(in_duckdbs_words(case.query.text)).fetchall())

    def arrow_answer(self, case: Case, sql: str, source: pa.Table) -> pa.Table:
        """Return the answer to another query, with ``source`` as the source."""
        self._know(case, source)
        return self._db.sql(in_duckdbs_words(sql)).to_arrow_table()

    def _know(self, case: Case, source: pa.Table) -> None:
        self._db.register("src", source)
        if self._case is not case:
            self._db.register("dim", arrow_rows(DIMENSION_COLUMNS, case.dimension))
            self._db.register("details", arrow_rows(DETAILS_COLUMNS, case.details))
            self._case = case


def in_duckdbs_words(sql: str) -> str:
    """Translate a query of this library for DuckDB."""
    named = sql.replace(SOURCE, "src").replace(DIMENSION, "dim").replace(DETAILS, "details")
    return re.sub(r"/\*.*?\*/", "", named).replace("LEFT SEMI JOIN", "SEMI JOIN").replace("LEFT ANTI JOIN", "ANTI JOIN")
