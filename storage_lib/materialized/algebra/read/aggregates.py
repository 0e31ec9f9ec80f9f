"""Aggregates in the clauses of a SELECT."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

__all__ = ["aggregates_in", "is_aggregated"]


def is_aggregated(select: exp.Select) -> bool:
    """Return whether the answer of ``select`` has one row per group."""
    return bool(select.args.get("group") or select.args.get("having") or aggregates_in(select))


def aggregates_in(select: exp.Select) -> list[exp.Expr]:
    """Return the aggregates of SELECT, HAVING and QUALIFY, each once; not those over windows and in sub-queries."""
    clauses = [*select.expressions, select.args.get("having"), select.args.get("qualify")]
    found: list[exp.Expr] = []
    for clause in clauses:
        for each in _aggregates(clause) if clause is not None else ():
            if each not in found:
                found.append(each)
    return found


def _aggregates(node: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Query):
        return
    if isinstance(node, exp.Window):
        # The function before OVER reads rows of a window; only what it is applied to can be an aggregate of a group.
        function = node.this
        while isinstance(function, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
            function = function.this
        inner = [*function.iter_expressions(), *(each for each in node.iter_expressions() if each is not node.this)]
        for each in inner:
            yield from _aggregates(each)
        return
    if isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup) or (
        isinstance(node, exp.IgnoreNulls | exp.RespectNulls) and isinstance(node.this, exp.AggFunc)
    ):
        yield node
        return
    for each in node.iter_expressions():
        yield from _aggregates(each)
