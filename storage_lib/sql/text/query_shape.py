"""The shape of a query: whether its rows can carry the row kinds of the changes that it reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

_LOSING = (exp.Group, exp.Distinct, exp.AggFunc, exp.Window, exp.SetOperation, exp.Limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryShape:
    """Shape of a query.

    ``is_rowwise``: each output row is computed from one row of each table, so it can have the row kind of one of them.
    ``outermost`` are the offsets of the tables in the outermost FROM; ``projection_end`` is the offset of that FROM
    (None: unknown).
    """

    is_rowwise: bool = False
    projection_end: int | None = None
    outermost: frozenset[int] = frozenset()


def has_star(tree: exp.Expr) -> bool:
    """Return whether the query reads columns that it does not name."""
    if any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star)):
        return True
    is_natural = any(join.args.get("method") for join in tree.find_all(exp.Join))
    return is_natural or any(not select.expressions for select in tree.find_all(exp.Select))


def shape_of(tree: exp.Expr, text: str, tables: Sequence[int]) -> QueryShape:
    """Return the shape of a query; ``tables`` are the offsets of its tables."""
    if not isinstance(tree, exp.Select) or tree.args.get("laterals"):
        return QueryShape()
    source = tree.args.get("from_")
    outermost = _outermost(tree)
    if source is None or not isinstance(source.this, exp.Table) or not outermost:
        return QueryShape()
    return QueryShape(
        is_rowwise=not any(_is_of(tree, node) for node in tree.find_all(*_LOSING)),
        projection_end=_from_before(text, min(outermost)),
        outermost=frozenset(outermost) & frozenset(tables),
    )


def _outermost(tree: exp.Select) -> set[int]:
    sources = [tree.args["from_"], *tree.args.get("joins", [])] if tree.args.get("from_") else []
    tables = [each.this for each in sources if isinstance(each.this, exp.Table)]
    firsts = [table.parts[0] for table in tables if table.parts]
    return {int(first.meta["start"]) for first in firsts if "start" in first.meta}


def _is_of(tree: exp.Select, node: exp.Expr) -> bool:
    """Return whether a node belongs to the outermost query itself; sub-queries and CTEs are not restricted."""
    return node.find_ancestor(exp.Subquery, exp.CTE) is None or node is tree


def _from_before(text: str, place: int) -> int | None:
    at = text.upper().rfind("FROM", 0, place)
    return at if at >= 0 and not text[at + len("FROM") : place].strip() else None
