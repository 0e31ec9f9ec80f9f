"""GROUP BY and aggregates of a SELECT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from storage_lib.errors import InvalidInputError
from storage_lib.materialized.algebra.read.aggregates import aggregates_in
from storage_lib.materialized.algebra.read.functions import check_aggregate
from storage_lib.materialized.algebra.read.not_incremental import NotIncrementalError
from storage_lib.materialized.algebra.read.scope import Scope, in_tree, place_of, translated, type_of
from storage_lib.materialized.algebra.read.subqueries import Subqueries
from storage_lib.materialized.algebra.tree.expressions import column, columns_in_all, replaced_outside_queries
from storage_lib.materialized.algebra.tree.relational_operators import Aggregate, Item, Project, Relation

if TYPE_CHECKING:
    from storage_lib.materialized.algebra.read.query_reader import QueryReader

__all__ = ["grouped"]


def grouped(
    reader: QueryReader,
    subqueries: Subqueries,
    relation: Relation,
    select: exp.Select,
    values: Sequence[exp.Expr],
    conditions: Sequence[exp.Expr | None],
) -> tuple[Relation, list[exp.Expr], list[exp.Expr | None]]:
    """Return the groups, and ``values`` and ``conditions`` with the groups' columns in place of keys and aggregates.

    Raises ``InvalidInputError`` for a column that is neither grouped nor aggregated.
    """
    scope = subqueries.scope
    keys: list[tuple[exp.Expr, str]] = []
    for each in _group_keys(select):
        relation, value = subqueries.without_queries(relation, each)
        name = value.name if isinstance(value, exp.Column) else reader.names.column()
        if all(each != known for known, _ in keys):
            keys.append((each, name))
    computed: list[tuple[exp.Expr, Item]] = []
    for each in aggregates_in(select):
        check_aggregate(each)
        relation, value = subqueries.without_queries(relation, each)
        computed.append((each, (reader.names.column(), value)))
    items = {name: translated(each, scope) for each, name in keys}
    items |= {name: column(name) for name in columns_in_all(value for _, (_, value) in computed)}
    if not columns_in_all(items.values()) <= set(relation.outputs):
        raise NotIncrementalError("an aggregate reads a column of an outer query")
    names = tuple(dict.fromkeys(name for _, name in keys))
    groups = Aggregate(Project(relation, tuple(items.items())), names, tuple(item for _, item in computed))
    by = [*keys, *((each, name) for each, (name, _) in computed)]

    over = _OverGroups(tuple(by), scope)
    return groups, [over(each) for each in values], [None if each is None else over(each) for each in conditions]


@dataclass(frozen=True, slots=True)
class _OverGroups:
    """Puts the groups' columns in place of their keys and aggregates."""

    by: tuple[tuple[exp.Expr, str], ...]
    scope: Scope

    def __call__(self, value: exp.Expr) -> exp.Expr:
        result = replaced_outside_queries(value, self._column)
        for node in result.walk(prune=lambda each: isinstance(each, exp.Query)):
            if isinstance(node, exp.Column) and node.table and node.table.lower() in self.scope.tables:
                raise InvalidInputError(f"{place_of(node)}{node.sql('spark')} is neither in GROUP BY nor aggregated")
        return result

    def _column(self, node: exp.Expr) -> exp.Expr | None:
        found = next((name for each, name in self.by if node == each), None)
        if found is None:
            return None
        return in_tree(found, type_of(node))


def _group_keys(select: exp.Select) -> list[exp.Expr]:
    group = select.args.get("group")
    if group is None:
        return []
    for clause in ("grouping_sets", "cube", "rollup", "totals", "all"):
        if group.args.get(clause):
            raise NotIncrementalError(f"GROUP BY {clause.upper().replace('_', ' ')} has no rule")
    if not group.expressions:
        raise NotIncrementalError("GROUP BY without expressions has no rule")
    for each in group.expressions:
        if isinstance(each, exp.Rollup | exp.Cube | exp.GroupingSets):
            raise NotIncrementalError(f"GROUP BY {each.key.upper()} has no rule")
    return [each.unnest() for each in group.expressions]
