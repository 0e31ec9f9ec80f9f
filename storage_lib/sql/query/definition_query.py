"""The query of a materialized table or of a stream: checked, with errors at its place, and as the text to store.

The stored text outlives the session, so it may name only tables of the catalog, at their newest rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from storage_lib.catalog.table_name import TableName
from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.materialized.algebra import compile_query
from storage_lib.materialized.sources.lake_source import LakeSource
from storage_lib.materialized.sources.source_tables import source_table
from storage_lib.sql.definition.virtual_columns import computed_columns
from storage_lib.sql.query.query_runner import dataframe_of
from storage_lib.sql.query.source_cycle import path_between
from storage_lib.sql.query.stored_views import why_not_lasting, without_views
from storage_lib.sql.text.qualified_query import in_place, qualified

if TYPE_CHECKING:
    from storage_lib.sql.state.session_catalogs import SessionCatalog
    from storage_lib.sql.state.session_state import SessionState
    from storage_lib.sql.text.query_tables import Query, TableReference
    from storage_lib.sql.text.source_text import SourceText
    from storage_lib.table.dynamic_table import DynamicTable

_PLACED = re.compile(r"line (\d+), column (\d+): (.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionQuery:
    """The text of a checked query, with full names of its tables, and the names of its columns."""

    text: str
    columns: tuple[str, ...]


def definition_query(
    state: SessionState,
    query: Query,
    source: SourceText,
    *,
    table: str,
    reader: str = "a materialized table",
    has_names: bool = True,
    reads_lakes: bool = False,
) -> DefinitionQuery:
    """Check a query and return it as it is stored as the definition of ``table``, which ``reader`` is in messages.

    ``has_names`` as for ``compile_query``. ``reads_lakes``: it may name tables of Delta Lake and Iceberg. Views of the
    catalog are stored as the queries that they are now.

    Raises ``InvalidInputError`` for temporary views and tables, tables of Spark, system tables, branches, hints, AS OF
    and ``table`` itself, and for anything that Spark refuses; ``NotFoundError`` for missing tables. Each shows its
    place in ``source``, the whole statement.
    """
    query, source = without_views(state, query, source)
    for reference in query.tables:
        _check(state, reference, source, table=table, reader=reader, has_star=query.has_star, reads_lakes=reads_lakes)
    dataframe_of(state, query, source, streaming=False, only_plans=True)
    columns = _compiled_columns(state, query, source, has_names=has_names)
    return DefinitionQuery(text=qualified(query, state.database, state.catalogs), columns=columns)


def _compiled_columns(state: SessionState, query: Query, source: SourceText, *, has_names: bool) -> tuple[str, ...]:
    """Compile the query where it is in the statement, as a refresh will do with the stored text."""
    lakes = {each.parts for each in query.tables if state.session_catalog(each.parts) is not None}
    names = dict.fromkeys(state.full_name(each.parts) for each in query.tables if each.parts not in lakes)
    tables = [state.catalog.load_table(name) for name in names]
    sources = [source_table(table.name, table) for table in tables]
    sources += [source_table(".".join(parts), _lake_source(state, parts)) for parts in sorted(lakes)]
    try:
        text = in_place(query, source, state.catalogs)
        return compile_query(text, sources, database=state.database, has_names=has_names).columns
    except InvalidInputError as error:
        hint = _hint_at_computed(str(error), tables)
        raise InvalidInputError(_marked(f"{error}{hint}", query, source)) from error


def _lake_source(state: SessionState, parts: tuple[str, ...]) -> LakeSource:
    catalog, database, table = parts
    lake = state.catalogs[catalog].lake
    if lake is None:
        raise AssertionError(catalog)
    return LakeSource(lake.history(database, table))


def _hint_at_computed(message: str, tables: Iterable[DynamicTable]) -> str:
    for table in tables:
        for column, expression in computed_columns(table.schema.options).items():
            if f"'{column.lower()}'" in message.lower():
                return f"; it is computed when {table.name} is read: write ({expression}) instead"
    return ""


def _marked(message: str, query: Query, source: SourceText) -> str:
    """Return a message about the query with its place: the one that it begins with, or the query's first character."""
    found = _PLACED.match(message)
    if found is None:
        return source.marked(query.start, message)
    return source.marked(source.offset(int(found[1]), int(found[2])), found[3])


def _check(
    state: SessionState,
    reference: TableReference,
    source: SourceText,
    *,
    table: str,
    reader: str,
    has_star: bool,
    reads_lakes: bool,
) -> None:
    problem = _problem(state, reference, table=table, reader=reader, reads_lakes=reads_lakes)
    if problem is not None:
        raise InvalidInputError(source.marked(reference.start, problem))
    if state.session_catalog(reference.parts) is not None:
        return
    if state.home_of(reference.parts) is None:
        try:
            error = state.not_found(reference.parts)
        except NotFoundError as of_catalog:
            error = of_catalog
        if isinstance(error, NotFoundError):
            raise NotFoundError(source.marked(reference.start, str(error)))
        problem = f"{reference} is a Spark table; the query of {reader} reads tables of the catalog"
        raise InvalidInputError(source.marked(reference.start, problem))
    computed = computed_columns(state.catalog.load_table(state.full_name(reference.parts)).schema.options)
    if computed and has_star:
        problem = (
            f"SELECT * would read {', '.join(computed)} of {reference}, which is computed at each read; name the "
            "stored columns"
        )
        raise InvalidInputError(source.marked(reference.start, problem))


def _problem(
    state: SessionState, reference: TableReference, *, table: str, reader: str, reads_lakes: bool
) -> str | None:
    """Return why the query can't name this table; None if it can or the table is missing."""
    catalog = state.session_catalog(reference.parts)
    temporary = None if catalog is not None else why_not_lasting(state, reference)
    if temporary is not None:
        return f"{reference} is {temporary}"
    if reference.as_of is not None or reference.hint:
        return f"{reader} follows the newest rows of {reference}; leave the hint or AS OF out"
    if catalog is not None:
        return _problem_of_catalog(catalog, reference, reader, reads_lakes=reads_lakes)
    return _problem_of_name(state, reference, table, reader)


def _problem_of_catalog(
    catalog: SessionCatalog, reference: TableReference, reader: str, *, reads_lakes: bool
) -> str | None:
    if catalog.lake is None:
        return (
            f"{reference} is a table of catalog {catalog.name} of type {catalog.kind}; {reader} reads tables of the "
            "session's own catalog, and of catalogs of the types delta and iceberg"
        )
    if not reads_lakes:
        return (
            f"{reference} is a table of catalog {catalog.name}, of which {reader} gets no changes; CREATE MATERIALIZED "
            "TABLE ... AS SELECT reads it, and its refreshes apply the changes"
        )
    if any("." in part for part in reference.parts):
        return f"{reference} has a dot in a part of its name, which {reader} can't read"
    return None


def _problem_of_name(state: SessionState, reference: TableReference, table: str, reader: str) -> str | None:
    try:
        name = TableName.parse(state.full_name(reference.parts))
    except InvalidInputError as error:
        return str(error)
    except NotFoundError:
        return None
    if name.plain != name:
        return f"{reference} is a branch or a system table; name the table {name.plain} itself"
    path = path_between(state.catalog, str(name), table)
    if path is None:
        return None
    through = "".join(f", and {reader} reads {read}" for reader, read in pairwise(path))
    return f"{reader.partition(' ')[2]} {table} can't read itself: the query reads {name}{through}"
