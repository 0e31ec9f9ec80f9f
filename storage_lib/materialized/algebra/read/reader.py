"""Read a query whose names are resolved into a tree of operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from storage_lib.errors import InvalidInputError
from storage_lib.materialized.algebra.names import Names
from storage_lib.materialized.algebra.query_sources import SourceTable
from storage_lib.materialized.algebra.read.aggregates import is_aggregated
from storage_lib.materialized.algebra.read.first_rows import top_rows
from storage_lib.materialized.algebra.read.grouping import grouped
from storage_lib.materialized.algebra.read.not_incremental import NotIncrementalError
from storage_lib.materialized.algebra.read.query_reader import Answer, Shared
from storage_lib.materialized.algebra.read.scope import Scope, place_of, translated, type_of
from storage_lib.materialized.algebra.read.subqueries import Subqueries
from storage_lib.materialized.algebra.read.windows import windowed
from storage_lib.materialized.algebra.tree.expressions import (
    column,
    columns_in,
    columns_in_all,
    conjunction,
    conjuncts,
    same,
)
from storage_lib.materialized.algebra.tree.relational_operators import (
    Aggregate,
    Filter,
    InnerJoin,
    Item,
    OneRow,
    OuterJoin,
    Project,
    Relation,
    Scan,
    SemiJoin,
    Union,
)

__all__ = ["Reader"]

_REFUSED_CLAUSES = {
    "limit": "LIMIT of a scalar sub-query has no rule",
    "offset": "OFFSET of a scalar sub-query has no rule",
    "laterals": "LATERAL VIEW has no rule",
    "connect": "CONNECT BY has no rule",
    "windows": "WINDOW clauses have no rule; write the definition after OVER",
    "match": "MATCH_RECOGNIZE has no rule",
    "pivots": "PIVOT has no rule",
    "sort": "SORT BY has no rule",
    "cluster": "CLUSTER BY has no rule",
    "distribute": "DISTRIBUTE BY has no rule",
}


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the parts of one query. ``sources``: (database, table) in lower case -> the table."""

    sources: Mapping[tuple[str, str], SourceTable]
    names: Names

    def read(self, query: exp.Expr, outer: Scope | None = None, shared: Mapping[str, Shared] | None = None) -> Answer:
        """Return the rows of a query. ``shared``: common table expressions in sight."""
        shared = self._with_shared(query, dict(shared or {}))
        if query.args.get("limit") or query.args.get("offset"):
            return self._top(query, outer, shared)
        if isinstance(query, exp.Subquery) and not query.args.get("joins"):
            _refuse_other_clauses(query)
            return self.read(query.this, outer, shared)
        if isinstance(query, exp.SetOperation):
            return self._set_operation(query, outer, shared)
        if isinstance(query, exp.Select):
            return self.select(query, outer, shared)
        raise NotIncrementalError(f"{query.key.upper()} has no rule")

    def select(self, select: exp.Select, outer: Scope | None, shared: Mapping[str, Shared]) -> Answer:
        """Return the rows of a SELECT."""
        scope = Scope(outer)
        relation = self.rows_of(select, scope, shared)
        subqueries = Subqueries(self, scope, shared)
        where, having, qualify = (select.args.get(clause) for clause in ("where", "having", "qualify"))
        relation, correlated = subqueries.filtered(relation, where.this if where else None)
        values = [each.unalias() for each in select.expressions]
        conditions = [having.this if having else None, qualify.this if qualify else None]
        if is_aggregated(select):
            if correlated:
                raise NotIncrementalError("a sub-query with an aggregate reads a column of an outer query")
            relation, values, conditions = grouped(self, subqueries, relation, select, values, conditions)
        if conditions[0] is not None:
            relation, more = subqueries.filtered(relation, conditions[0])
            correlated += more
        relation, values, condition = windowed(self.names, subqueries, relation, values, conditions[1])
        if condition is not None:
            relation = Filter(relation, condition)
        labels = [each.alias_or_name for each in select.expressions]
        return self._finished(select, relation, labels, values, correlated)

    def rows_of(self, select: exp.Select, scope: Scope, shared: Mapping[str, Shared]) -> Relation:
        """Return the rows of FROM and its joins, and add their columns to ``scope``."""
        _refuse_clauses(select)
        source = select.args.get("from_")
        relation: Relation = OneRow() if source is None else self._source(source.this, scope, shared)
        for join in select.args.get("joins") or ():
            relation = self._join(relation, join, scope, shared)
        return relation

    def _finished(
        self,
        select: exp.Select,
        relation: Relation,
        labels: Sequence[str],
        values: Sequence[exp.Expr],
        correlated: Sequence[exp.Expr],
    ) -> Answer:
        if not columns_in_all(values) <= set(relation.outputs):
            raise NotIncrementalError("SELECT of a sub-query reads a column of an outer query")
        items: list[Item] = []
        used: set[str] = set()
        for value in values:
            # A column that is only renamed keeps its name in the tree, so that joins around it can be merged.
            name = value.name if isinstance(value, exp.Column) and value.name not in used else self.names.column()
            used.add(name)
            items.append((name, value))
        if correlated:
            # Its readers are EXISTS and IN: they ask if there is a row, so DISTINCT makes no difference.
            hidden = columns_in_all(correlated) & set(relation.outputs) - used
            items += [(name, column(name)) for name in sorted(hidden)]
            return Answer(Project(relation, tuple(items)), tuple(labels), tuple(correlated))
        relation = Project(relation, tuple(items))
        if select.args.get("distinct"):
            relation = Aggregate(relation, relation.outputs, (), is_distinct=True)
        return Answer(relation, tuple(labels))

    def _top(self, query: exp.Expr, outer: Scope | None, shared: Mapping[str, Shared]) -> Answer:
        bare = query.copy()
        for clause in ("limit", "offset", "order"):
            bare.set(clause, None)
        answer = self.read(bare, outer, shared)
        if answer.correlated:
            raise NotIncrementalError("LIMIT of a sub-query that reads a column of an outer query has no rule")
        return Answer(top_rows(query, answer.relation, answer.labels), answer.labels)

    def _with_shared(self, query: exp.Expr, shared: dict[str, Shared]) -> dict[str, Shared]:
        clause = query.args.get("with_")
        if clause is None:
            return shared
        if clause.args.get("recursive"):
            raise NotIncrementalError("WITH RECURSIVE has no rule")
        # Each expression sees those before it.
        for each in clause.expressions:
            shared = {**shared, each.alias.lower(): Shared(each.this, _alias_columns(each), shared)}
        return shared

    def _source(self, source: exp.Expr, scope: Scope, shared: Mapping[str, Shared]) -> Relation:
        for clause in ("pivots", "sample", "laterals", "joins", "version", "when", "hints"):
            if source.args.get(clause):
                raise NotIncrementalError(f"{clause.upper().rstrip('S')} of a table has no rule")
        if isinstance(source, exp.Table):
            name = source.name.lower()
            if not source.db and name in shared:
                expression = shared[name]
                answer = self.read(expression.query, None, expression.shared)
                return self._named(answer, source.alias_or_name, scope, _alias_columns(source) or expression.labels)
            return self._scan(source, scope)
        if isinstance(source, exp.Subquery):
            _refuse_other_clauses(source)
            answer = self.read(source.this, None, self._with_shared(source, dict(shared)))
            return self._named(answer, source.alias_or_name, scope, _alias_columns(source))
        raise NotIncrementalError(f"{source.key.upper()} in FROM has no rule")

    def _named(self, answer: Answer, alias: str, scope: Scope, given: Sequence[str]) -> Relation:
        labels = [*given, *answer.labels[len(given) :]]
        scope.add(alias, dict(zip(labels, answer.relation.outputs, strict=False)))
        return _without_renaming(answer.relation)

    def _scan(self, table: exp.Table, scope: Scope) -> Relation:
        found = self.sources.get((table.db.lower(), table.name.lower()))
        if found is None:
            raise InvalidInputError(f"{place_of(table)}there is no table {table.db}.{table.name}")
        columns = [(name, self.names.column()) for name, _ in found.columns]
        given = _alias_columns(table)
        labels = given or [name for name, _ in columns]
        scope.add(table.alias_or_name, {label: name for label, (_, name) in zip(labels, columns, strict=False)})
        return Scan(found.name, tuple(columns))

    def _join(self, left: Relation, join: exp.Join, scope: Scope, shared: Mapping[str, Shared]) -> Relation:
        method, side, kind = (str(join.args.get(part) or "").upper() for part in ("method", "side", "kind"))
        if method or kind not in ("", "INNER", "CROSS", "OUTER", "SEMI", "ANTI") or join.args.get("using"):
            raise NotIncrementalError(f"{method or kind or 'USING'} JOIN has no rule")
        semi = kind in ("SEMI", "ANTI")
        inner = Scope(scope) if semi else scope
        right = self._source(join.this, inner, shared)
        on = join.args.get("on")
        if on is not None and any(on.find_all(exp.Query)):
            raise NotIncrementalError("a sub-query in ON has no rule")
        condition = exp.true() if on is None else translated(on, inner)
        if not columns_in(condition) <= {*left.outputs, *right.outputs}:
            raise NotIncrementalError("ON reads a column of an outer query")
        if semi:
            return SemiJoin(left, right, condition, anti=kind == "ANTI")
        if side == "LEFT":
            return OuterJoin(left, right, condition)
        if side == "RIGHT":
            return OuterJoin(right, left, condition)
        if side == "FULL":
            return OuterJoin(left, right, condition, is_full=True)
        return InnerJoin((left, right), tuple(conjuncts(condition)) if on is not None else ())

    def _set_operation(self, query: exp.SetOperation, outer: Scope | None, shared: Mapping[str, Shared]) -> Answer:
        _refuse_clauses(query)
        if query.args.get("by_name") or query.args.get("side") or query.args.get("kind"):
            raise NotIncrementalError(f"{query.key.upper()} BY NAME has no rule")
        left, right = self.read(query.this, outer, shared), self.read(query.expression, outer, shared)
        if left.correlated or right.correlated:
            raise NotIncrementalError(f"{query.key.upper()} reads a column of an outer query")
        width = len(left.labels)
        if width != len(right.labels):
            raise InvalidInputError(
                f"{place_of(query)}the sides of {query.key.upper()} have {width} and {len(right.labels)} columns"
            )
        if isinstance(query, exp.Union):
            names = tuple(self.names.column() for _ in range(width))
            relation: Relation = Union((left.relation, right.relation), names)
            if query.args.get("distinct"):
                relation = Aggregate(relation, names, (), is_distinct=True)
            return Answer(relation, left.labels)
        if not query.args.get("distinct"):
            raise NotIncrementalError(f"{query.key.upper()} ALL has no rule")
        first = left.relation
        if not _have_known_types(query):
            # The columns have the common type of both sides, as those of a union.
            none = Filter(right.relation, exp.false())
            first = Union((first, none), tuple(self.names.column() for _ in range(width)))
        rows = Aggregate(first, first.outputs, (), is_distinct=True)
        pairs = zip(first.outputs, right.relation.outputs, strict=True)
        condition = conjunction(same(column(one), column(other)) for one, other in pairs)
        return Answer(SemiJoin(rows, right.relation, condition, anti=isinstance(query, exp.Except)), left.labels)


def _have_known_types(query: exp.SetOperation) -> bool:
    """Return whether both sides are known to have the same types."""
    sides = (query.this.unnest(), query.expression.unnest())
    if not all(isinstance(side, exp.Select) for side in sides):
        return False
    kinds = [[type_of(each.unalias()) for each in side.expressions] for side in sides]
    known = [kind for kind in kinds[0] if kind is not None and kind.this is not exp.DataType.Type.UNKNOWN]
    return len(known) == len(kinds[0]) and kinds[0] == kinds[1]


def _without_renaming(relation: Relation) -> Relation:
    """Return the input of a projection that neither computes nor repeats columns."""
    if isinstance(relation, Project) and all(
        isinstance(value, exp.Column) and value.name == name for name, value in relation.items
    ):
        return relation.input
    return relation


def _alias_columns(source: exp.Expr) -> list[str]:
    alias = source.args.get("alias")
    return [each.name for each in alias.columns] if alias is not None else []


def _refuse_other_clauses(query: exp.Subquery) -> None:
    """Refuse what may follow a query in parentheses, except for its alias and an order without a limit."""
    for clause, value in query.args.items():
        if value and clause not in ("this", "alias", "with_", "order"):
            raise NotIncrementalError(f"{clause.upper()} after a query in parentheses has no rule")


def _refuse_clauses(query: exp.Expr) -> None:
    for clause, reason in _REFUSED_CLAUSES.items():
        if query.args.get(clause):
            raise NotIncrementalError(reason)
