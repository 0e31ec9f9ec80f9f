"""Expressions over the columns of a tree: references, conjunctions, substitution."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sqlglot import exp

__all__ = [
    "column",
    "columns_in",
    "columns_in_all",
    "conjunction",
    "conjuncts",
    "replaced",
    "replaced_outside_queries",
    "same",
]


def column(name: str) -> exp.Expr:
    """Return a reference to a column of the tree."""
    return exp.column(name)


def columns_in(expression: exp.Expr) -> frozenset[str]:
    """Return the names of the columns that ``expression`` reads."""
    return frozenset(each.name for each in expression.find_all(exp.Column))


def columns_in_all(expressions: Iterable[exp.Expr]) -> frozenset[str]:
    """Return the names of the columns that any of the expressions reads."""
    return frozenset(name for each in expressions for name in columns_in(each))


def replaced(expression: exp.Expr, by: Mapping[str, exp.Expr]) -> exp.Expr:
    """Return ``expression`` with the columns in ``by`` replaced."""

    def replace(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name in by:
            found = by[node.name].copy()
            return found if isinstance(found, exp.Column | exp.Literal) else exp.paren(found, copy=False)
        return node

    return expression.copy().transform(replace, copy=False)


def replaced_outside_queries(expression: exp.Expr, by: Callable[[exp.Expr], exp.Expr | None]) -> exp.Expr:
    """Return ``expression`` with the nodes replaced for which ``by`` returns one; sub-queries stay as they are."""
    found = by(expression)
    if found is not None:
        return found
    copied = expression.copy()
    for node in list(copied.walk(prune=lambda each: isinstance(each, exp.Query) or by(each) is not None)):
        if not isinstance(node, exp.Query) and (found := by(node)) is not None:
            node.replace(found)
    return copied


def conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    """Return the parts of ``condition`` that AND connects."""
    if isinstance(condition, exp.Paren):
        return conjuncts(condition.this)
    if isinstance(condition, exp.And):
        return [*conjuncts(condition.this), *conjuncts(condition.expression)]
    return [condition]


def conjunction(conditions: Iterable[exp.Expr]) -> exp.Expr:
    """Return the conditions connected by AND; TRUE if there are none."""
    parts = [each.copy() for each in conditions]
    return exp.and_(*parts, copy=False) if parts else exp.true()


def same(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Return the comparison that is true for equal values and for two NULLs."""
    return exp.NullSafeEQ(this=exp.paren(left.copy(), copy=False), expression=exp.paren(right.copy(), copy=False))
