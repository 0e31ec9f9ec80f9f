"""A streaming query over changes: its rows have to tell what they mean, or a deletion would be written as a row.

Flink carries a row's kind beside it; Spark knows columns only. So the kind is put behind the columns of a query that
makes each row out of one change, and any other query has to do without changes, or say itself what becomes of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError
from storage_lib.sql.query_runner import Rewritten, names_of_changes, rewritten, sql_of
from storage_lib.sql.query_tables import Query, quoted
from storage_lib.sql.session_state import SessionState
from storage_lib.sql.settings import RUNTIME_MODE
from storage_lib.sql.source_text import SourceText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage_lib.table.dynamic_table import DynamicTable


def stream_with_kinds(
    state: SessionState, query: Query, source: SourceText, table: DynamicTable, output_mode: str
) -> DataFrame:
    """The query as a stream whose rows carry their kinds, if it reads changes.

    Raises ``InvalidInputError`` for a query that would lose them.
    """
    with rewritten(state, query) as found:
        df = sql_of(state, found, source)
        if not found.changes or table.options.row_kind_field in df.columns:
            return df
        changed = _changed_table(query, found)
    if changed is None:
        if output_mode in ("update", "complete"):
            message = (
                f"the query reads changes of {names_of_changes(list(found.changes.values()))} and works out results of "
                "several rows, which Spark would take for insertions, deleted and updated rows too. Read a table that "
                "only grows (write-mode=append-only), or count by hand: SUM(CASE WHEN _row_kind IN ('+I', '+U') THEN n "
                "ELSE -n END) over a stream with scan.normalize=lookup, with the column _row_kind named in the query"
            )
        else:
            message = (
                f"the query reads changes of {names_of_changes(list(found.changes.values()))}, and its rows would not "
                "tell insertions from deletions. Select the column "
                f"{next(iter(found.changes.values())).row_kind_column} as well, or read one snapshot of all tables but "
                f"one: hint OPTIONS('{RUNTIME_MODE}' = 'batch')"
            )
        raise InvalidInputError(message)
    alias, column = changed
    own = quoted(table.options.row_kind_field)
    with rewritten(state, query, projected=f", {alias}.{quoted(column)} AS {own} ") as found:
        return sql_of(state, found, source)


def _changed_table(query: Query, found: Rewritten) -> tuple[str, str] | None:
    """The one table whose changes the query's rows are: the name that the query calls it by, and the column."""
    if not query.shape.is_rowwise or query.shape.projection_end is None or len(found.changes) != 1:
        return None
    ((place, relation),) = found.changes.items()
    if place not in query.shape.outermost or relation.row_kind_column is None:
        return None
    (reference,) = (each for each in query.tables if each.start == place)
    return quoted(reference.alias or reference.parts[-1]), relation.row_kind_column
