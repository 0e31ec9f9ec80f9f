"""Groups that the rows of an answer name."""

from __future__ import annotations

from sqlglot import exp

from storage_lib.materialized.algebra.tree.relational_operators import (
    Aggregate,
    Filter,
    Project,
    Relation,
    TopRows,
    Window,
)

__all__ = ["regrouped"]


def regrouped(tree: Relation) -> tuple[Aggregate | Window, dict[str, str]] | None:
    """Return the operator whose groups can be told from the answer's columns, and its keys' names in the answer.

    The old rows of such groups are those that are stored, so they need not be computed again.
    """
    names = {name: name for name in tree.outputs}
    if isinstance(tree, TopRows):
        tree = tree.input
    while isinstance(tree, Project | Filter):
        if isinstance(tree, Project):
            values = dict(tree.items)
            names = {inner.name: outer for own, outer in names.items() if isinstance(inner := values[own], exp.Column)}
        tree = tree.input
    if isinstance(tree, Aggregate | Window) and tree.keys and set(tree.keys) <= names.keys():
        return tree, {key: names[key] for key in tree.keys}
    return None
