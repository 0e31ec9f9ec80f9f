"""CREATE, ALTER, DROP and SHOW of views: temporary ones of the session, and those that the catalog stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.catalog.views.view import View
from storage_lib.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from storage_lib.schema.options.nearest import did_you_mean
from storage_lib.sql.query.query_runner import dataframe_of
from storage_lib.sql.query.stored_views import cycle, refuse_lasting_view, views_read
from storage_lib.sql.run.run_show_describe import matches, no_database
from storage_lib.sql.state.result import Result, rows_of
from storage_lib.sql.state.session_state import SessionState, ViewText
from storage_lib.sql.text.qualified_query import qualified
from storage_lib.sql.text.source_text import SourceText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage_lib.sql.statements.show_describe import ShowViews
    from storage_lib.sql.statements.table_statements import AlterView, CreateView, DropView


def run_create_view(state: SessionState, statement: CreateView, source: SourceText) -> Result:
    """Store the view's text, which is inserted into each query that names the view."""
    if statement.temporary:
        return _create_temporary(state, statement, source)
    parts = statement.view.parts
    if len(parts) == 1 and (state.view(parts) is not None or state.temporary.home_of(parts[0]) is not None):
        message = f"{statement.view} is a temporary view or table, which would hide the view; drop it first"
        raise AlreadyExistsError(message)
    name = state.full_name(parts)
    if state.find_stored_view(parts) is not None and statement.if_not_exists:
        return Result(message=f"view {name} already exists")
    refuse_lasting_view(state, statement.query, source, view=name)
    if name in views_read(state, statement.query):
        raise cycle((name,))
    _check_columns(statement, dataframe_of(state, statement.query, source, streaming=False, only_plans=True))
    view = View(
        name=name,
        query=qualified(statement.query, state.database),
        columns=statement.columns,
        comment=statement.comment,
        column_comments=statement.column_comments,
    )
    state.catalog.views.create(view, or_replace=statement.or_replace)
    return Result(message=f"view {name} created")


def _create_temporary(state: SessionState, statement: CreateView, source: SourceText) -> Result:
    if len(statement.view.parts) != 1:
        message = (
            f"temporary view {statement.view}: temporary views have no database; name it {statement.view.parts[-1]}"
        )
        raise InvalidInputError(message)
    name = statement.view.parts[0].lower()
    if name in state.views and statement.if_not_exists:
        return Result(message=f"view {statement.view} already exists")
    if name in state.views and not statement.or_replace:
        message = f"view {statement.view} already exists; drop it, or write CREATE OR REPLACE TEMPORARY VIEW"
        raise AlreadyExistsError(message)
    if state.temporary.home_of(name) is not None:
        message = f"temporary table {statement.view} already exists; drop it, or choose another name"
        raise AlreadyExistsError(message)
    if any(each.parts == statement.view.parts for each in statement.query.tables) and name in state.views:
        message = f"view {statement.view} would read itself; give one of them another name"
        raise InvalidInputError(message)
    _check_columns(statement, dataframe_of(state, statement.query, source))
    state.views[name] = ViewText(statement=statement, source=source)
    return Result(message=f"view {statement.view} created")


def _check_columns(statement: CreateView, df: DataFrame) -> None:
    if statement.columns and len(statement.columns) != len(df.columns):
        message = f"view {statement.view} names {len(statement.columns)} columns, and its query gives {len(df.columns)}"
        raise InvalidInputError(message)
    names = [each.lower() for each in statement.columns or df.columns]
    twice = sorted({each for each in names if names.count(each) > 1})
    if twice and not statement.temporary:
        message = f"view {statement.view} has two columns {', '.join(twice)}; give one of them another name with AS"
        raise InvalidInputError(message)


def run_drop_view(state: SessionState, statement: DropView) -> Result:
    """Drop a view: a temporary one hides, and is dropped before, one of the catalog."""
    parts = statement.view.parts
    if state.view(parts) is not None:
        del state.views[parts[0].lower()]
        return Result(message=f"view {statement.view} dropped")
    if state.find_stored_view(parts) is not None and not statement.temporary:
        state.catalog.views.drop(state.full_name(parts), if_exists=True)
        return Result(message=f"view {state.full_name(parts)} dropped")
    if state.home_of(parts) is not None:
        message = f"{statement.view} is a table; write DROP TABLE {statement.view}"
        raise InvalidInputError(message)
    if statement.if_exists:
        return Result(message=f"view {statement.view} does not exist")
    database = state.full_name(parts).partition(".")[0]
    known = [*state.views, *(each.partition(".")[2] for each in state.catalog.views.names(database))]
    message = f"view {statement.view} does not exist{did_you_mean(parts[-1], known)}"
    raise NotFoundError(message)


def run_alter_view(state: SessionState, statement: AlterView) -> Result:
    """Rename a view of the catalog."""
    if state.view(statement.view.parts) is not None:
        message = f"{statement.view} is a temporary view; create it again under the other name"
        raise InvalidInputError(message)
    name, new_name = state.full_name(statement.view.parts), state.full_name(statement.new_name.parts)
    if statement.if_exists and state.find_stored_view(statement.view.parts) is None:
        return Result(message=f"view {name} does not exist")
    state.catalog.views.rename(name, new_name)
    return Result(message=f"view {name} renamed to {new_name}")


def run_show_views(state: SessionState, statement: ShowViews) -> Result:
    """List the views of a database, and the session's temporary ones."""
    database = statement.database or state.database
    if statement.database is not None and database not in state.catalog.list_databases():
        raise no_database(state, database)
    lines: list[tuple[str | None, ...]] = [
        (database, name.partition(".")[2], "false") for name in state.catalog.views.names(database)
    ]
    lines += [("", name, "true") for name in sorted(str(each.statement.view) for each in state.views.values())]
    found = [line for line in lines if matches(str(line[1]), statement.pattern)]
    return Result(rows=rows_of(("database", "view", "temporary"), found))
