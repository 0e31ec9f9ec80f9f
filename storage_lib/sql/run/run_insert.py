"""INSERT: map a query's columns to the table's, and write the rows as one commit or as a stream of commits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.option_values import parse_integer
from storage_lib.spark.verbs.dataframe_verbs import write
from storage_lib.sql.query.query_runner import rewritten, sql_of
from storage_lib.sql.run.foreign_tables import insert_into_sparks, is_sparks
from storage_lib.sql.run.insert_rows import (
    CHANGE_TRACKING,
    as_rows,
    boolean_hint,
    change_tracking_of,
    named_by_its_query,
    with_names_of,
    write_hint,
    written,
    written_columns,
)
from storage_lib.sql.run.materialized_refusals import refuse_row_change
from storage_lib.sql.run.run_insert_stream import STREAM_HINTS, run_insert_stream
from storage_lib.sql.state.result import Result
from storage_lib.sql.state.session_state import SessionState
from storage_lib.sql.state.settings import RuntimeMode
from storage_lib.sql.state.spark_words import errors_in_words
from storage_lib.sql.statements.row_statements import Insert
from storage_lib.sql.text.source_text import SourceText

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable

DYNAMIC_OVERWRITE = "dynamic-partition-overwrite"
_USER = "commit-user"
_IDENTIFIER = "commit-identifier"
_BATCH_HINTS = (CHANGE_TRACKING, _USER, _IDENTIFIER, DYNAMIC_OVERWRITE)


def run_insert(state: SessionState, statement: Insert, source: SourceText) -> Result:
    """Write the query's rows.

    In streaming mode, returns the running stream; with ``table.dml-sync``, waits until the stream has ended.
    """
    table = state.find(statement.target.table)
    if table is None:
        if is_sparks(state, statement.target.table):
            return insert_into_sparks(state, statement, source)
        raise state.not_found(statement.target.table.parts)
    refuse_row_change(table, "INSERT")
    streaming = state.settings.runtime_mode is RuntimeMode.STREAMING
    hint = write_hint(table, statement.target.hint, STREAM_HINTS if streaming else _BATCH_HINTS)
    if streaming and statement.overwrite:
        message = (
            f"table {table.name}: a stream never has all rows, so it can't INSERT OVERWRITE; use INSERT INTO, or SET "
            "'execution.runtime-mode' = 'batch'"
        )
        raise InvalidInputError(message)
    if not statement.by_name:
        written_columns(table, statement)
    if streaming:
        statement = named_by_its_query(state, table, statement, source)
        return run_insert_stream(state, table, statement, source, written_columns(table, statement), hint)
    with rewritten(state, statement.query) as found:
        df = sql_of(state, found, source)
    names = written_columns(table, with_names_of(statement, table, df.columns))
    rows = as_rows(df, table, names, {} if statement.partition is None else statement.partition.values)
    with errors_in_words():
        snapshot = write(
            rows,
            table,
            mode="overwrite" if statement.overwrite else "append",
            partition=_replaced(table, statement, hint) if statement.overwrite else None,
            change_tracking=change_tracking_of(state, table, hint),
            commit_user=hint.get(_USER, state.identity.user),
            commit_identifier=(parse_integer(hint[_IDENTIFIER]) if _IDENTIFIER in hint else state.identity.identifier),
        )
    return written(table, snapshot)


def _replaced(table: DynamicTable, statement: Insert, hint: Mapping[str, str]) -> dict[str, object] | None:
    """Return the partition that an overwrite replaces; None: all partitions that occur in the rows."""
    fixed = {} if statement.partition is None else dict(statement.partition.values)
    is_dynamic = (
        len(fixed) < len(table.schema.partition_keys) and boolean_hint(table, hint, DYNAMIC_OVERWRITE) is not False
    )
    return None if is_dynamic else {**fixed}
