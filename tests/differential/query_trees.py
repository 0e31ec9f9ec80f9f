"""The query of a case as the tree that the product plans from, parsed from its text without Spark.

Comparing the product's reading of Spark's own analysed plan needs Spark; here its decisions are tested thousands of
times.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

import sqlglot
from sqlglot import exp

from storage_lib.spark.stream.plan.query_tree import (
    Filter,
    Fixed,
    FixedTable,
    Join,
    JoinKind,
    Node,
    Project,
    Stream,
    StreamTable,
    Union,
    Value,
)
from storage_lib.spark.types.spark_schema import ROW_POSITION
from tests.differential.case import DETAILS_COLUMNS, DIMENSION_COLUMNS, Branch, Case
from tests.differential.oracle import in_duckdbs_words

_KINDS = {
    ("", ""): JoinKind.INNER,
    ("LEFT", ""): JoinKind.LEFT,
    ("RIGHT", ""): JoinKind.RIGHT,
    ("LEFT", "SEMI"): JoinKind.SEMI,
    ("", "SEMI"): JoinKind.SEMI,
    ("", "ANTI"): JoinKind.ANTI,
    ("", "CROSS"): JoinKind.CROSS,
}
_COLUMNS = {
    "dim": [name for name, _ in DIMENSION_COLUMNS],
    "details": [name for name, _ in DETAILS_COLUMNS],
}
Names = dict[str, dict[str, int]]
"""Column numbers by table alias and column name."""


class QueryTree:
    """Parsed query. ``node`` is its root, ``columns`` the numbers of its columns by name."""

    def __init__(self, case: Case) -> None:
        self._numbers = itertools.count(1)
        self._case = case
        self._carried = case.query.carried
        branches = [self._branch(branch) for branch in case.query.branches]
        self.node, self.columns = branches[0] if len(branches) == 1 else self._union(branches)
        if case.query.form != "plain":
            outer = {name: next(self._numbers) for name in self.columns}
            values = {outer[name]: _same(number) for name, number in self.columns.items()}
            self.node, self.columns = Project(child=self.node, columns=values), outer

    def _union(self, branches: list[tuple[Node, dict[str, int]]]) -> tuple[Node, dict[str, int]]:
        outer = {name: next(self._numbers) for name in branches[0][1]}
        columns = {outer[name]: tuple(of[name] for _, of in branches) for name in outer}
        return Union(children=tuple(node for node, _ in branches), columns=columns), outer

    def _branch(self, branch: Branch) -> tuple[Node, dict[str, int]]:
        select = sqlglot.parse_one(in_duckdbs_words(branch.text(self._carried)), read="duckdb")
        names: Names = {}
        node = self._table(select.args["from_"].this, names)
        for join in select.args.get("joins") or []:
            right = self._table(join.this, names)
            kind = _KINDS[join.side or "", join.kind if join.kind in ("SEMI", "ANTI", "CROSS") else ""]
            node = Join(
                left=node,
                right=right,
                kind=kind,
                condition=_value(join.args.get("on"), names),
                broadcasts_left=f"({select.args['from_'].this.alias})" in branch.hint,
                broadcasts_right=f"({join.this.alias})" in branch.hint,
            )
        if select.args.get("where"):
            node = Filter(child=node, condition=_value(select.args["where"].this, names))
        columns = {item.alias: next(self._numbers) for item in select.expressions}
        values = {columns[item.alias]: _value(item.this, names) for item in select.expressions}
        return Project(child=node, columns=values), columns

    def _table(self, source: exp.Expr, names: Names) -> Node:
        alias = source.alias
        if isinstance(source, exp.Subquery):
            inner = source.this
            names[alias] = {item.alias_or_name: next(self._numbers) for item in inner.expressions}
            columns = frozenset(names[alias].values())
            return Fixed(table=FixedTable(name=inner.args["from_"].this.name), columns=columns)
        if source.name != "src":
            names[alias] = {name: next(self._numbers) for name in _COLUMNS[source.name]}
            return Fixed(table=FixedTable(name=source.name), columns=frozenset(names[alias].values()))
        of_case = self._case.source
        kind = None if of_case.is_append_only else "_row_kind"
        every = [*of_case.names, *([kind] if kind else []), ROW_POSITION, "_arrived"]
        names[alias] = {name: next(self._numbers) for name in every}
        return Stream(
            table=StreamTable(
                name="src",
                columns=names[alias],
                primary_keys=of_case.primary_key,
                kind_column=kind,
                position_column=ROW_POSITION,
                normalize=self._case.normalize,
                is_eventual=of_case.is_eventual,
                is_complete=not of_case.key or of_case.log.startswith("all-"),
            )
        )


def _same(number: int) -> Value:
    return Value(reads=frozenset([number]), same_as=number)


def _value(expression: exp.Expr | None, names: Mapping[str, Mapping[str, int]]) -> Value:
    if expression is None:
        return Value()
    if isinstance(expression, exp.Column):
        return _same(names[expression.table][expression.name])
    columns: Iterable[exp.Column] = expression.find_all(exp.Column)
    # Columns of a subquery's own tables have no qualifier, or the alias x.
    reads = {names[each.table][each.name] for each in columns if each.table in names}
    tables = {table.name for table in expression.find_all(exp.Table)}
    return Value(
        reads=frozenset(reads),
        tables=tuple(FixedTable(name=name) for name in sorted(tables)),
        text=expression.sql("spark"),
    )
