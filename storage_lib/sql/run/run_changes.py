"""DELETE, UPDATE and MERGE: Spark computes which rows change, and their changes are appended in one commit.

No file is rewritten, and each change is in the log. Conditions are evaluated on the newest snapshot; if another writer
commits before the changes do, they are computed again (``changed_rows``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.nearest import did_you_mean
from storage_lib.schema.options.table_options import MergeEngine
from storage_lib.sql.definition.virtual_columns import computed_columns
from storage_lib.sql.query.query_runner import rewritten, sql_of
from storage_lib.sql.query.store_assignment import as_stored
from storage_lib.sql.run.changed_rows import commit_changed_rows
from storage_lib.sql.run.insert_rows import CHANGE_TRACKING, change_tracking_of, write_hint, written
from storage_lib.sql.run.materialized_refusals import refuse_row_change
from storage_lib.sql.run.run_show_describe import static_values
from storage_lib.sql.state.result import Result
from storage_lib.sql.state.session_state import SessionState
from storage_lib.sql.statements.parts import Expression, Target
from storage_lib.sql.statements.row_statements import Analyze, Assignment, Delete, Truncate, Update
from storage_lib.sql.text.mapped_text import ComposedText, MappedText
from storage_lib.sql.text.query_tables import quoted, read_query
from storage_lib.sql.text.source_text import SourceText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage_lib.table.dynamic_table import DynamicTable

_DELETED, _BEFORE, _AFTER = "-D", "-U", "+U"


def run_delete(state: SessionState, statement: Delete, source: SourceText) -> Result:
    """Append a ``-D`` for every row that matches."""
    table = changed_table(state, statement.target, "DELETE")
    names = [field.name for field in table.schema.fields]
    text = MappedText().add(_selected([quoted(name) for name in names], table, _DELETED))
    add_target(text, statement.target)
    add_where(text, statement.condition)
    return append_changes(state, table, statement.target, lambda: nullcontext(query_of(state, text, source)))


def run_update(state: SessionState, statement: Update, source: SourceText) -> Result:
    """Append a ``+U`` for every row that matches, and for a table without a key also the ``-U`` pre-image."""
    table = changed_table(state, statement.target, "UPDATE")
    set_ = assignments_of(table, statement.target, statement.assignments, "UPDATE")
    names = [field.name for field in table.schema.fields]
    text = MappedText().add("SELECT ")
    for index, name in enumerate(names):
        text.add(", " if index else "")
        value = set_.get(name)
        if value is None:
            text.add(quoted(name))
        else:
            text.add("(").add(value.text, value.start).add(")")
        text.add(f" AS {quoted(name)}")
    text.add(f", '{_AFTER}' AS {quoted(table.options.row_kind_field)} FROM ")
    add_target(text, statement.target)
    add_where(text, statement.condition)

    def rows_of() -> AbstractContextManager[DataFrame]:
        rows = as_stored(query_of(state, text, source), table, [*names, table.options.row_kind_field])
        if table.schema.primary_keys:
            return nullcontext(rows)
        before = MappedText().add(_selected([quoted(name) for name in names], table, _BEFORE))
        add_target(before, statement.target)
        add_where(before, statement.condition)
        return nullcontext(query_of(state, before, source).unionByName(rows))

    return append_changes(state, table, statement.target, rows_of)


def run_truncate(state: SessionState, statement: Truncate) -> Result:
    """Delete all rows of the table or of a partition; every deletion is in the table's log, if it has one."""
    table = state.load(statement.table)
    refuse_row_change(table, "TRUNCATE")
    spec = {} if statement.partition is None else static_values(table, statement.partition)
    return written(table, table.overwrite(table.arrow_schema.empty_table(), partition=spec))


def run_analyze(state: SessionState, statement: Analyze) -> Result:
    """Collect statistics of the newest snapshot."""
    table = state.load(statement.table)
    names = [field.name for field in table.schema.fields]
    for name in statement.columns or ():
        if name not in names:
            message = f"table {table.name} has no column {name!r}{did_you_mean(name, names)}"
            raise InvalidInputError(message)
    columns = names if statement.columns is None else list(statement.columns)
    return written(table, table.maintenance.analyze(columns))


def changed_table(state: SessionState, target: Target, verb: str) -> DynamicTable:
    """Load the table that a statement changes; ``InvalidInputError`` if appended rows can't change its rows."""
    table = state.load(target.table)
    refuse_row_change(table, verb)
    if table.schema.is_append_only:
        message = (
            f"table {table.name} is append-only: {verb} needs rows that can be taken back; INSERT OVERWRITE the "
            "partition without them, or make a table without write-mode=append-only"
        )
        raise InvalidInputError(message)
    engine = table.options.merge_engine
    if engine not in (MergeEngine.DEDUPLICATE, MergeEngine.VALUE_COUNT):
        message = (
            f"table {table.name}: with merge-engine={engine} a row that is written is merged into the one that is "
            f"there, so {verb} can't say what it shall be; INSERT INTO the rows to merge, or INSERT OVERWRITE"
        )
        raise InvalidInputError(message)
    return table


def assignments_of(
    table: DynamicTable, target: Target, assignments: Sequence[Assignment], verb: str
) -> dict[str, Expression]:
    """Return column -> new value. Raises ``InvalidInputError`` for an unknown, repeated, computed or key column."""
    found: dict[str, Expression] = {}
    for each in assignments:
        name = _assigned_column(table, target, each.column, verb)
        if name in found:
            message = f"table {table.name}: {verb} sets column {name!r} twice"
            raise InvalidInputError(message)
        found[name] = each.value
    return found


def _assigned_column(table: DynamicTable, target: Target, assigned: str, verb: str) -> str:
    by_lower_case = {field.name.lower(): field.name for field in table.schema.fields}
    column = assigned
    if assigned.lower() not in by_lower_case:
        before, _, last = assigned.rpartition(".")
        column = last if before.lower() in _names_of(target) else assigned
    name = by_lower_case.get(column.lower())
    if name is None:
        raise _no_column(table, column, by_lower_case, verb)
    if name in table.schema.primary_keys:
        message = (
            f"table {table.name}: column {name!r} is part of the primary key, which says which row it is; {verb} "
            "can't set it. DELETE the row, and INSERT the new one"
        )
        raise InvalidInputError(message)
    return name


def _names_of(target: Target) -> set[str]:
    """Return the qualifiers that a column name may have, in lower case."""
    if target.alias is not None:
        return {target.alias.lower()}
    parts = [part.lower() for part in target.table.parts]
    return {".".join(parts[index:]) for index in range(len(parts))}


def _no_column(table: DynamicTable, column: str, by_lower_case: Mapping[str, str], verb: str) -> InvalidInputError:
    if column in computed_columns(table.schema.options):
        return InvalidInputError(f"table {table.name}: column {column!r} is computed from others and can't be set")
    whole = by_lower_case.get(column.partition(".")[0].lower())
    if whole is not None and "." in column:
        message = (
            f"table {table.name}: {verb} sets whole columns, and {column!r} is a part of one; say what all of "
            f"{whole!r} becomes: SET {whole} = named_struct(...)"
        )
        return InvalidInputError(message)
    return InvalidInputError(
        f"table {table.name} has no column {column!r}{did_you_mean(column, list(by_lower_case.values()))}"
    )


def append_changes(
    state: SessionState,
    table: DynamicTable,
    target: Target,
    rows_of: Callable[[], AbstractContextManager[DataFrame]],
) -> Result:
    """Commit the changes that ``rows_of`` computes from the current rows of the table, with their row kinds."""
    hint = write_hint(table, target.hint, (CHANGE_TRACKING,))
    tracked = change_tracking_of(state, table, hint)
    return written(table, commit_changed_rows(state, table, rows_of, change_tracking=tracked))


def query_of(state: SessionState, text: MappedText, source: SourceText) -> DataFrame:
    """Run a generated query that contains parts of the statement, over one snapshot of each table."""
    own = ComposedText.of(text, source)
    query = read_query(own, 0, len(own.text))
    with rewritten(state, query, streaming=False) as found:
        return sql_of(state, found, own)


def add_target(text: MappedText, target: Target) -> None:
    """Add the table's name and alias to a query."""
    text.add(".".join(quoted(part) for part in target.table.parts), target.table.start)
    text.add(f" AS {quoted(target.alias)}" if target.alias is not None else "")


def add_where(text: MappedText, condition: Expression | None) -> None:
    """Add the statement's condition to a query."""
    if condition is not None:
        # Parentheses ensure that the text can only be a condition.
        text.add(" WHERE (").add(condition.text, condition.start).add(")")


def _selected(columns: Sequence[str], table: DynamicTable, kind: str) -> str:
    return f"SELECT {', '.join(columns)}, '{kind}' AS {quoted(table.options.row_kind_field)} FROM "
