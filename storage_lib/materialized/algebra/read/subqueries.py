"""Conditions with sub-queries, as joins.

Source of the rules: Galindo-Legaria and Joshi, "Orthogonal Optimization of Subqueries and Aggregation", SIGMOD 2001.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from sqlglot import exp

from storage_lib.materialized.algebra.read.aggregates import aggregates_in, is_aggregated
from storage_lib.materialized.algebra.read.functions import check_aggregate
from storage_lib.materialized.algebra.read.not_incremental import NotIncrementalError
from storage_lib.materialized.algebra.read.scope import Scope, in_tree, translated
from storage_lib.materialized.algebra.tree.expressions import column, columns_in, conjunction, conjuncts
from storage_lib.materialized.algebra.tree.relational_operators import (
    Aggregate,
    Filter,
    InnerJoin,
    OuterJoin,
    Project,
    Relation,
    SemiJoin,
)

if TYPE_CHECKING:
    from storage_lib.materialized.algebra.read.query_reader import QueryReader, Shared

__all__ = ["Subqueries"]

_Query = TypeVar("_Query", bound=exp.Expr)


@dataclass(frozen=True, slots=True)
class Subqueries:
    """Applies conditions and expressions of one SELECT that may contain queries."""

    reader: QueryReader
    scope: Scope
    shared: Mapping[str, Shared]

    def filtered(self, relation: Relation, condition: exp.Expr | None) -> tuple[Relation, list[exp.Expr]]:
        """Return the rows that satisfy a condition, and its parts that read columns of an outer query."""
        correlated: list[exp.Expr] = []
        parts = list(conjuncts(condition)) if condition is not None else []
        # Conditions of a join have to be below the sub-queries: a refresh computes changes of the join alone, and
        # without them they are all pairs of rows.
        parts.sort(key=lambda part: part.find(exp.Query) is not None)
        for part in parts:
            relation, simple = self._joined(relation, part)
            if simple is None:
                continue
            if columns_in(simple) <= set(relation.outputs):
                relation = Filter(relation, simple)
            else:
                correlated.append(simple)
        return relation, correlated

    def without_queries(self, relation: Relation, expression: exp.Expr) -> tuple[Relation, exp.Expr]:
        """Return an expression in which columns of the returned rows stand for scalar sub-queries."""
        expression = expression.copy()
        if any(_queries_in(expression, exp.Exists, exp.In)):
            raise NotIncrementalError("EXISTS and IN with a query have a rule only where AND connects them")
        while True:
            query = next(_queries_in(expression, exp.Subquery), None)
            if query is None:
                return relation, translated(expression, self.scope)
            relation, value = self._scalar(relation, query)
            if query is expression:
                expression = exp.paren(value, copy=False)
            else:
                query.replace(exp.paren(value, copy=False))

    def _joined(self, relation: Relation, part: exp.Expr) -> tuple[Relation, exp.Expr | None]:
        anti, inner = False, part
        while isinstance(inner, exp.Not | exp.Paren):
            anti ^= isinstance(inner, exp.Not)
            inner = inner.this
        if isinstance(inner, exp.Exists):
            return self._exists(relation, inner, anti=anti), None
        if isinstance(inner, exp.In) and inner.args.get("query"):
            return self._in(relation, inner, anti=anti), None
        return self.without_queries(relation, part)

    def _exists(self, relation: Relation, exists: exp.Exists, *, anti: bool) -> Relation:
        answer = self.reader.read(exists.this, self.scope, self.shared)
        condition = conjunction(answer.correlated)
        return self._semi_join(relation, answer.relation, condition, anti=anti)

    def _in(self, relation: Relation, test: exp.In, *, anti: bool) -> Relation:
        answer = self.reader.read(test.args["query"], self.scope, self.shared)
        tested = test.this.unnest()
        values = tested.expressions if isinstance(tested, exp.Tuple) else [tested]
        if len(values) != len(answer.labels):
            raise NotIncrementalError("IN compares a value with rows of another number of columns")
        comparisons: list[exp.Expr] = []
        for value, name in zip(values, answer.relation.outputs, strict=False):
            relation, simple = self.without_queries(relation, value)
            comparisons.append(exp.EQ(this=exp.paren(simple), expression=column(name)))
        if anti:
            # x NOT IN (...) is true only if every comparison is false: one that is NULL excludes the row.
            both = conjunction(comparisons)
            comparisons = [exp.or_(both.copy(), exp.Is(this=exp.paren(both.copy()), expression=exp.null()), copy=False)]
        condition = conjunction([*(exp.paren(each) for each in comparisons), *answer.correlated])
        return self._semi_join(relation, answer.relation, condition, anti=anti)

    def _semi_join(self, left: Relation, right: Relation, condition: exp.Expr, *, anti: bool) -> Relation:
        if not columns_in(condition) <= {*left.outputs, *right.outputs}:
            raise NotIncrementalError("a sub-query reads columns of a query that is not directly around it")
        return SemiJoin(left, right, condition, anti)

    def _scalar(self, relation: Relation, subquery: exp.Subquery) -> tuple[Relation, exp.Expr]:
        query = subquery.this
        if not isinstance(query, exp.Select) or subquery.args.get("with_") or query.args.get("with_"):
            raise NotIncrementalError("a scalar sub-query that is not a plain SELECT has no rule")
        if query.args.get("group") or not is_aggregated(query) or query.args.get("distinct"):
            raise NotIncrementalError("a scalar sub-query without an aggregate may have several rows")
        if query.args.get("having"):
            raise NotIncrementalError("a scalar sub-query with HAVING has no rule")
        bare = query.copy()
        bare.set("expressions", [exp.alias_(each, f"a{n}") for n, each in enumerate(aggregates_in(query))])
        where = bare.args.get("where")
        bare.set("where", None)
        return self._aggregated(relation, query, bare, where)

    def _aggregated(
        self, relation: Relation, query: exp.Select, bare: exp.Select, where: exp.Expr | None
    ) -> tuple[Relation, exp.Expr]:
        """Join the aggregates of a scalar sub-query to each row, and compute the sub-query's value from them."""
        inner = Scope(self.scope)
        rows = self.reader.rows_of(bare, inner, self.shared)
        nested = Subqueries(self.reader, inner, self.shared)
        rows, correlated = nested.filtered(rows, where.this if where is not None else None)
        keys, outer = [], []
        for condition in correlated:
            own, other = _sides(condition, set(rows.outputs), set(relation.outputs))
            keys.append((self.reader.names.column(), own))
            outer.append(other)
        computed: list[tuple[exp.Expr, str]] = []
        used: dict[str, exp.Expr] = dict(keys)
        for each in aggregates_in(query):
            check_aggregate(each)
            value = translated(each, inner)
            if not columns_in(value) <= set(rows.outputs):
                raise NotIncrementalError("an aggregate of a sub-query reads a column of an outer query")
            used |= {name: column(name) for name in columns_in(value)}
            computed.append((value, self.reader.names.column()))
        aggregate = Aggregate(
            Project(rows, tuple(used.items())),
            tuple(name for name, _ in keys),
            tuple((name, value) for value, name in computed),
        )
        (value,) = (each.unalias().copy() for each in query.expressions)
        value = _with_aggregates(
            value, [(each, name, bool(keys)) for each, (_, name) in zip(aggregates_in(query), computed, strict=True)]
        )
        if not keys:
            return InnerJoin((relation, aggregate)), translated(value, self.scope)
        condition = conjunction(
            exp.EQ(this=exp.paren(other), expression=column(name)) for other, (name, _) in zip(outer, keys, strict=True)
        )
        return OuterJoin(relation, aggregate, condition), translated(value, self.scope)


def _with_aggregates(value: exp.Expr, aggregates: list[tuple[exp.Expr, str, bool]]) -> exp.Expr:
    def replace(node: exp.Expr) -> exp.Expr:
        for each, name, may_be_missing in aggregates:
            if node == each:
                reference = in_tree(name)
                counts = isinstance(each, exp.Count | exp.CountIf | exp.ApproxDistinct)
                # No row at all: COUNT is 0, every other aggregate NULL.
                if counts and may_be_missing:
                    return exp.Coalesce(this=reference, expressions=[exp.Literal.number(0)])
                if isinstance(each, exp.Filter) and may_be_missing:
                    raise NotIncrementalError("FILTER in a correlated sub-query has no rule")
                return reference
        return node

    return value.transform(replace, copy=False)


def _sides(condition: exp.Expr, own: set[str], outer: set[str]) -> tuple[exp.Expr, exp.Expr]:
    """Return the sides of an equality of the sub-query's rows and the outer query's."""
    bare = condition.unnest()
    if isinstance(bare, exp.EQ):
        for one, other in ((bare.this, bare.expression), (bare.expression, bare.this)):
            if columns_in(one) and columns_in(one) <= own and columns_in(other) <= outer:
                return one, other
    raise NotIncrementalError("a scalar sub-query is joined to the outer query by more than equalities")


def _queries_in(expression: exp.Expr, *kinds: type[_Query]) -> Iterator[_Query]:
    """Yield the outermost sub-queries of some kinds."""
    for node in expression.walk(prune=lambda each: isinstance(each, exp.Query)):
        if isinstance(node, exp.In) and not node.args.get("query"):
            continue
        if isinstance(node, kinds):
            yield node
