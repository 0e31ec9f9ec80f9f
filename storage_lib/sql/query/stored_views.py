"""The views that the catalog stores, as queries read them: by their text, which is put in the place of their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.sql.query.information_schema import information_relation
from storage_lib.sql.state.session_state import SessionState, ViewText
from storage_lib.sql.statements.parts import NamedTable
from storage_lib.sql.statements.table_statements import CreateView
from storage_lib.sql.text.qualified_query import edited
from storage_lib.sql.text.query_tables import Query, TableReference, quoted, read_query
from storage_lib.sql.text.source_text import SourceText

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage_lib.catalog.views.view import View

VIEW_DEPTH_MAX = 32


def visible_view(state: SessionState, parts: Sequence[str]) -> View | None:
    """Return the stored view of a name of one to three parts; None if there is none, or something hides it.

    A temporary view or table hides it, and a table that another engine has created under its name.
    """
    if state.view(parts) is not None or state.home_of(parts) is not None:
        return None
    return state.find_stored_view(parts)


def view_text(view: View) -> ViewText:
    """Return a stored view as the statement that created it."""
    source = SourceText(text=view.query)
    statement = CreateView(
        view=NamedTable(parts=tuple(view.name.split("."))),
        query=read_query(source, 0, len(source.text)),
        columns=view.columns,
    )
    return ViewText(statement=statement, source=source)


def refuse_hint_on_view(reference: TableReference) -> None:
    """Raise ``InvalidInputError`` if a query gives the name of a view a hint or AS OF."""
    if reference.hint or reference.as_of is not None:
        message = f"{reference} is a view; hints and AS OF belong to the tables inside it"
        raise InvalidInputError(message)


def without_views(state: SessionState, query: Query, source: SourceText) -> tuple[Query, SourceText]:
    """Return the query with the texts of stored views in the place of their names, and the text of its offsets.

    That is the query itself if it names no stored view.
    """
    if not any(visible_view(state, each.parts) for each in query.tables):
        return query, source
    written = SourceText(text=_expanded(state, query, ()))
    return read_query(written, 0, len(written.text)), written


def views_read(state: SessionState, query: Query) -> set[str]:
    """Return the full names of the stored views that a query reads, also through other views."""
    found: set[str] = set()
    queries = [query]
    while queries:
        for reference in queries.pop().tables:
            view = visible_view(state, reference.parts)
            if view is not None and view.name not in found:
                found.add(view.name)
                queries.append(view_text(view).statement.query)
    return found


def refuse_lasting_view(state: SessionState, query: Query, source: SourceText, *, view: str) -> None:
    """Refuse what a stored view can't read, as it outlives the session: temporary views and tables, tables of Spark.

    Raises ``InvalidInputError``, and ``NotFoundError`` for missing tables, with the place in ``source``.
    """
    for reference in query.tables:
        problem = why_not_lasting(state, reference)
        is_ours = state.home_of(reference.parts) is not None or visible_view(state, reference.parts) is not None
        if problem is None and not is_ours and state.is_sparks(reference.parts):
            problem = "a table of Spark; it reads tables and views of the catalog"
        if problem is not None:
            raise InvalidInputError(source.marked(reference.start, f"view {view} can't read {reference}, {problem}"))
        if not is_ours:
            error = state.not_found(reference.parts)
            kind = NotFoundError if isinstance(error, NotFoundError) else InvalidInputError
            raise kind(source.marked(reference.start, str(error)))


def why_not_lasting(state: SessionState, reference: TableReference) -> str | None:
    """Return what a query names that ends with the session, and what to write instead; None if it outlives that."""
    if state.view(reference.parts) is not None:
        return (
            "a temporary view, which ends with the session; write its query as a common table expression: WITH "
            f"{reference} AS (SELECT ...)"
        )
    catalog = state.session_catalog(reference.parts)
    if catalog is not None:
        return f"a table of catalog {catalog.name}, which ends with the session; keep a copy of its rows in a table"
    if information_relation(state, reference.parts) is not None:
        return "a relation of what the catalog holds at the moment of a query; read it in a query of a session"
    if len(reference.parts) == 1 and state.temporary.home_of(reference.parts[0]) is not None:
        return "a temporary table, which ends with the session; name a table of the catalog"
    return None


def _expanded(state: SessionState, query: Query, path: tuple[str, ...]) -> str:
    if len(path) > VIEW_DEPTH_MAX:
        raise cycle(path)
    edits = [(start, end, "") for start, end in query.qualifiers]
    for reference in query.tables:
        view = visible_view(state, reference.parts)
        if view is None:
            continue
        refuse_hint_on_view(reference)
        inner = _expanded(state, view_text(view).statement.query, (*path, view.name))
        name = quoted(reference.parts[-1])
        columns = f" AS {name}({', '.join(map(quoted, view.columns))})" if view.columns else ""
        text = f"(SELECT * FROM ({inner}){columns})" if columns else f"({inner})"
        edits.append((reference.start, reference.end, text if reference.alias is not None else f"{text} AS {name}"))
    return edited(query, edits)


def cycle(path: tuple[str, ...]) -> InvalidInputError:
    """Return the error for views that read each other."""
    names = ", ".join(dict.fromkeys(path)) or "they"
    return InvalidInputError(f"views read each other in a cycle ({names}); drop or replace one of them")
