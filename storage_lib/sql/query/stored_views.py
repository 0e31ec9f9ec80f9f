"""The views that the catalog stores, as queries read them: by their text, which is put in the place of their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.sql.state.session_state import SessionState, ViewText
from storage_lib.sql.statements.parts import NamedTable
from storage_lib.sql.statements.table_statements import CreateView
from storage_lib.sql.text.query_tables import Query, TableReference, quoted, read_query
from storage_lib.sql.text.source_text import SourceText

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage_lib.catalog.views.view import View

VIEW_DEPTH_MAX = 32


def stored_view(state: SessionState, parts: Sequence[str]) -> ViewText | None:
    """Return the view that the catalog stores under a name of one to three parts; None if there is none."""
    view = state.find_stored_view(parts)
    return None if view is None else view_text(view)


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
    if not any(_view_of(state, each) for each in query.tables):
        return query, source
    written = SourceText(text=_expanded(state, query, ()))
    return read_query(written, 0, len(written.text)), written


def views_read(state: SessionState, query: Query) -> set[str]:
    """Return the full names of the stored views that a query reads, also through other views."""
    found: set[str] = set()
    queries = [query]
    while queries:
        for reference in queries.pop().tables:
            view = _view_of(state, reference)
            if view is not None and view.name not in found:
                found.add(view.name)
                queries.append(view_text(view).statement.query)
    return found


def refuse_lasting_view(state: SessionState, query: Query, source: SourceText, *, view: str) -> None:
    """Refuse what a stored view can't read, as it outlives the session: temporary views and tables, tables of Spark.

    Raises ``InvalidInputError``, and ``NotFoundError`` for missing tables, with the place in ``source``.
    """
    for reference in query.tables:
        problem = _problem(state, reference)
        if problem is not None:
            raise InvalidInputError(source.marked(reference.start, f"view {view} {problem}"))
        if state.home_of(reference.parts) is None and _view_of(state, reference) is None:
            error = state.not_found(reference.parts)
            kind = NotFoundError if isinstance(error, NotFoundError) else InvalidInputError
            raise kind(source.marked(reference.start, str(error)))


def _problem(state: SessionState, reference: TableReference) -> str | None:
    if state.view(reference.parts) is not None:
        return (
            f"can't read {reference}, a temporary view, which ends with the session; write its query as a common "
            f"table expression: WITH {reference} AS (SELECT ...)"
        )
    if len(reference.parts) == 1 and state.temporary.home_of(reference.parts[0]) is not None:
        return f"can't read {reference}, a temporary table, which ends with the session; name a table of the catalog"
    if (
        state.home_of(reference.parts) is None
        and _view_of(state, reference) is None
        and state.is_sparks(reference.parts)
    ):
        return f"can't read {reference}, a table of Spark; it reads tables and views of the catalog"
    return None


def _view_of(state: SessionState, reference: TableReference) -> View | None:
    """Return the stored view that a query names, unless a temporary one or a table hides it."""
    if state.view(reference.parts) is not None or state.home_of(reference.parts) is not None:
        return None
    return state.find_stored_view(reference.parts)


def _expanded(state: SessionState, query: Query, path: tuple[str, ...]) -> str:
    if len(path) > VIEW_DEPTH_MAX:
        raise cycle(path)
    edits = [(start, end, "") for start, end in query.qualifiers]
    for reference in query.tables:
        view = _view_of(state, reference)
        if view is None:
            continue
        refuse_hint_on_view(reference)
        inner = _expanded(state, view_text(view).statement.query, (*path, view.name))
        name = quoted(reference.parts[-1])
        columns = f" AS {name}({', '.join(map(quoted, view.columns))})" if view.columns else ""
        text = f"(SELECT * FROM ({inner}){columns})" if columns else f"({inner})"
        edits.append((reference.start, reference.end, text if reference.alias is not None else f"{text} AS {name}"))
    parts, at = [], 0
    for start, end, replacement in sorted(edits):
        parts += [query.text[at : start - query.start], replacement]
        at = end - query.start
    return "".join(parts) + query.text[at:]


def cycle(path: tuple[str, ...]) -> InvalidInputError:
    """Return the error for views that read each other."""
    names = ", ".join(dict.fromkeys(path)) or "they"
    return InvalidInputError(f"views read each other in a cycle ({names}); drop or replace one of them")
