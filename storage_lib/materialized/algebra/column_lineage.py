"""Column lineage: from which columns of the sources each column of a query's answer is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.lineage import Node, lineage
from sqlglot.optimizer.scope import build_scope

from storage_lib.errors import InvalidInputError
from storage_lib.materialized.algebra.compile_query import resolve_query
from storage_lib.materialized.algebra.query_sources import SourceTable

__all__ = ["column_lineage"]

SourceColumn = tuple[str, str]
"""A table, as ``database.table``, and one of its columns."""


def column_lineage(text: str, sources: Sequence[SourceTable], *, database: str) -> dict[str, tuple[SourceColumn, ...]]:
    """Return, by column of the answer, the columns of the sources that its values are computed from, sorted.

    Columns that only select rows (conditions, join and group keys that are not in the answer) are left out. A column
    without sources, such as ``count(*)``, has an empty tuple. Raises as ``compile_query``.
    """
    query = resolve_query(text, sources, database=database)
    spelled = {
        (table.lower(), column.lower()): (table, column)
        for table, source in query.used.items()
        for column, _ in source.columns
    }
    scope = build_scope(query.resolved)
    if scope is None or not isinstance(query.resolved, exp.Query):
        message = "the columns of the query can't be traced: it is not a SELECT"
        raise InvalidInputError(message)
    try:
        roots = lineage(None, query.resolved, {}, dialect="spark", scope=scope, trim_selects=False)
    except (SqlglotError, ValueError, RecursionError) as error:
        message = f"the columns of the query can't be traced: {str(error)[:300]}"
        raise InvalidInputError(message) from None
    names = query.resolved.named_selects
    return {label: _sources_of(roots[name], spelled) for label, name in zip(query.labels, names, strict=True)}


def _sources_of(root: Node, spelled: Mapping[SourceColumn, SourceColumn]) -> tuple[SourceColumn, ...]:
    found = set()
    for node in root.walk():
        if isinstance(node.source, exp.Table) and not node.downstream:
            table = f"{node.source.db}.{node.source.name}".lower()
            column = node.name.rpartition(".")[2].strip('"`').lower()
            if (table, column) in spelled:
                found.add(spelled[table, column])
    return tuple(sorted(found))
