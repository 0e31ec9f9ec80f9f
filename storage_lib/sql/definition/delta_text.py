"""The SQL of a query's changes, for people: the statement that a refresh runs, with its sub-queries merged."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.merge_subqueries import merge_subqueries
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.simplify import simplify

from storage_lib.schema.filter.spark_text import SparkText

if TYPE_CHECKING:
    from storage_lib.materialized.algebra import CompiledQuery, Moment

_DIALECT = "spark"
_ANY_TYPE = "string"


def delta_text(compiled: CompiledQuery, table: str, columns: Sequence[str], changed: Collection[str]) -> str | None:
    """Return the SQL of the changes of ``table`` when the sources ``changed`` change; None if there is none.

    ``columns`` are those of the table. The rows of ``shop.orders`` are called ``shop_orders_before``,
    ``shop_orders_after`` and, with a column ``_weight``, ``shop_orders_delta``.
    """
    schema: dict[str, object] = {}

    def view(name: str, moment: Moment) -> str:
        relation = f"{name or table}_{moment.value}".replace(".", "_").replace("-", "_")
        known = [*compiled.needed[name], "_weight"] if name else columns
        schema[relation] = dict.fromkeys(known, _ANY_TYPE)
        return relation

    steps = compiled.delta(view, changed) if compiled.is_incremental else None
    if steps is None:
        return None
    text = steps.text
    try:
        tree = qualify(
            sqlglot.parse_one(text, read=SparkText), schema=schema, quote_identifiers=False, dialect=_DIALECT
        )
        return _without_own_aliases(simplify(merge_subqueries(tree))).sql(_DIALECT, pretty=True)
    except SqlglotError:  # only the layout is lost
        return sqlglot.transpile(text, read=SparkText, write=_DIALECT, pretty=True)[0]


def _without_own_aliases(tree: exp.Expr) -> exp.Expr:
    for each in tree.find_all(exp.Table):
        if each.alias == each.name:
            each.set("alias", None)
    return tree
