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
    traced = _by_position(query.resolved)
    scope = build_scope(traced)
    if scope is None or not isinstance(traced, exp.Query):
        message = "the columns of the query can't be traced: it is not a SELECT"
        raise InvalidInputError(message)
    if any(isinstance(each.this, exp.Subquery) for each in traced.find_all(exp.Lateral)):
        message = "the columns of the query can't be traced: it has a LATERAL sub-query"
        raise InvalidInputError(message)
    try:
        roots = lineage(None, traced, {}, dialect="spark", scope=scope, trim_selects=False)
    except (SqlglotError, ValueError, RecursionError) as error:
        message = f"the columns of the query can't be traced: {str(error)[:300]}"
        raise InvalidInputError(message) from None
    names = traced.named_selects
    return {label: _sources_of(roots[name], spelled) for label, name in zip(query.labels, names, strict=True)}


def _by_position(resolved: exp.Expr) -> exp.Expr:
    """Return a copy in which the sides of each UNION BY NAME have one order of columns: they are traced by position."""
    found = resolved.copy()
    for union in found.find_all(exp.SetOperation):
        if union.args.get("by_name"):
            right = union.expression.unnest()
            names, own = ([name.lower() for name in side.named_selects] for side in (union.this, right))
            if not isinstance(right, exp.Select) or {*names} != {*own}:
                message = "the columns of the query can't be traced: the sides of UNION BY NAME have other columns"
                raise InvalidInputError(message)
            right.set("expressions", [right.expressions[own.index(name)] for name in names])
    return found


def _sources_of(root: Node, spelled: Mapping[SourceColumn, SourceColumn]) -> tuple[SourceColumn, ...]:
    found = set()
    for node in root.walk():
        if isinstance(node.source, exp.Table) and not node.downstream:
            table = f"{node.source.db}.{node.source.name}".lower()
            column = node.name.rpartition(".")[2].strip('"`').lower()
            if (table, column) in spelled:
                found.add(spelled[table, column])
    return tuple(sorted(found))
