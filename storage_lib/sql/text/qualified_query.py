"""The text of a query with full table names, so that its meaning does not depend on a session's current database."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from storage_lib.sql.text.query_clauses import blank_around
from storage_lib.sql.text.query_tables import Query, quoted
from storage_lib.sql.text.source_text import SourceText

_FIRST_PART = re.compile(r"(?:`(?:[^`]|``)+`|[^`.\s]+)\s*\.\s*")
_PARTS_MAX = 3


def qualified(query: Query, database: str, catalogs: Collection[str] = ()) -> str:
    """Return the query's text with each table as ``database.table``, and otherwise as written.

    Tables of ``catalogs`` keep their catalog.
    ``database`` is the one of names without a database. Columns lose the ``database.`` before their table, whose name
    qualifies them.
    """
    edits = [(start, end, "") for start, end in query.qualifiers]
    for table in query.tables:
        if len(table.parts) == 1:
            edits.append((table.start, table.start, f"{quoted(database)}."))
        elif len(table.parts) == _PARTS_MAX and table.parts[0] not in catalogs:
            edits.append((table.start, table.end, ".".join(quoted(part) for part in table.parts[1:])))
    return edited(query, edits)


def edited(query: Query, edits: Iterable[tuple[int, int, str]]) -> str:
    """Return the query's text with ranges replaced: start and end in the statement, and the new text."""
    parts, at = [], 0
    for start, end, replacement in sorted(edits):
        parts += [query.text[at : start - query.start], replacement]
        at = end - query.start
    return "".join(parts) + query.text[at:]


def in_place(query: Query, source: SourceText, catalogs: Collection[str] = ()) -> str:
    """Return the query's text at its place in the script: the text before it and names of other ``catalogs`` are blank.

    Positions in it are those of the script, so that errors about it show where the user wrote the query.
    """
    text = blank_around(source, query.start, query.start + len(query.text))
    spans = list(query.qualifiers)
    for table in query.tables:
        is_blanked = len(table.parts) == _PARTS_MAX and table.parts[0] not in catalogs
        catalog = _FIRST_PART.match(text, table.start) if is_blanked else None
        spans += [] if catalog is None else [catalog.span()]
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    return "\n" * (source.first_line - 1) + text
