"""Aggregates whose value may differ in its last bits between two computations over the same rows."""

from __future__ import annotations

from sqlglot import exp

from storage_lib.materialized.algebra.read.functions import is_exact
from storage_lib.materialized.algebra.read.scope import type_of
from storage_lib.materialized.algebra.tree.relational_operators import Aggregate, Relation, Window, inputs_of

__all__ = ["first_inexact"]


def _name(function: exp.Expr) -> str:
    return function.this.key.upper() if isinstance(function, exp.Filter) else function.key.upper()


def _type(function: exp.Expr) -> str:
    argument = function.find(exp.Column)
    kind = None if argument is None else type_of(argument)
    return "inexact values" if kind is None else kind.sql("spark")


def first_inexact(relation: Relation, harmless: Relation | None) -> str | None:
    """Return an aggregate of ``relation`` that is not exact, except in the operator ``harmless``."""
    if isinstance(relation, Aggregate | Window) and relation is not harmless:
        for _, value in relation.items:
            function = value.this if isinstance(value, exp.Window) else value
            if not is_exact(function):
                return f"{_name(function)}() of {_type(function)}"
    for each in inputs_of(relation):
        found = first_inexact(each, harmless)
        if found is not None:
            return found
    return None
