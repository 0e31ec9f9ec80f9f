"""SQL text of a tree of operators."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.dialects.spark import Spark

from storage_lib.materialized.algebra.query_sources import Views
from storage_lib.materialized.algebra.read.table_names import WINDOW_CALL
from storage_lib.materialized.algebra.tree.joins import connected, flattened
from storage_lib.materialized.algebra.tree.relational_operators import (
    Aggregate,
    Filter,
    InnerJoin,
    Item,
    Named,
    OneRow,
    OuterJoin,
    Project,
    Relation,
    Scan,
    SemiJoin,
    TopRows,
    Union,
    Window,
    inputs_of,
)
from storage_lib.schema.filter.spark_text import SparkText

__all__ = ["Renderer"]

ONE_ROW = "count(*) AS one"
"""Selected from a global aggregate of which no column is read. It has one row, also over no rows."""
_WEIGHT = "_weight"
_WORDS = frozenset(Spark.Tokenizer.KEYWORDS)
"""Words that may mean something else than a column: TRUE, NULL, CURRENT_DATE."""


@dataclass(frozen=True, slots=True)
class Renderer:
    """Writes operators as SELECT statements in a dialect of sqlglot, over the relations that ``views`` names.

    ``prefix`` is part of the names of shared relations; ``empty`` are those that are known to have no row, and what
    can't have rows for that reason is left out.
    """

    views: Views
    dialect: str | type[SparkText] = SparkText
    prefix: str = ""
    empty: frozenset[str] = frozenset()

    def with_empty(self, name: str) -> Renderer:
        """Return a renderer that knows that a shared relation has no row."""
        return replace(self, empty=self.empty | {name})

    def shared_name(self, name: str) -> str:
        """Return the name of a shared relation in statements."""
        return f"{self.prefix}{name}"

    def name(self, name: str) -> str:
        """Return an identifier, quoted where the dialect needs it."""
        if name.isascii() and name.isidentifier() and name.islower() and name.upper() not in _WORDS:
            return name
        return exp.to_identifier(name).sql(self.dialect, identify=True)

    def query(self, relation: Relation) -> str:  # noqa: C901  one case per operator
        """Return the SELECT statement whose columns are ``relation.outputs``, in order."""
        match relation:
            case Scan():
                return self._scan(relation)
            case Named():
                return f"SELECT {self._names(relation.outputs)} FROM {self.shared_name(relation.name)}"
            case OneRow():
                return "SELECT 1 AS one"
            case Project():
                return f"SELECT {self._items(relation.items)} {self._from([relation.input])}"
            case Filter() | InnerJoin():
                inputs, conditions = flattened(relation)
                return f"SELECT {self._names(relation.outputs)} {self._from(connected(inputs, conditions), conditions)}"
            case OuterJoin():
                return self._outer_join(relation)
            case SemiJoin():
                return self.query(relation.left) if self._keeps_all(relation) else self._semi_join(relation)
            case Aggregate():
                return self._aggregate(relation)
            case Window():
                names = [self.name(each) for each in relation.input.outputs]
                return f"SELECT {', '.join([*names, self._items(relation.items)])} {self._from([relation.input])}"
            case TopRows():
                order = ", ".join(map(self._text, relation.order))
                rows = f"SELECT {self._names(relation.outputs)} {self._from([relation.input])}"
                return f"{rows} ORDER BY {order} LIMIT {relation.count}"
            case Union():
                return " UNION ALL ".join(self._parts(relation))

    def is_empty(self, relation: Relation) -> bool:
        """Return whether a relation can have no row, because shared relations have none."""
        if not self.empty:
            return False
        match relation:
            case Named():
                return relation.name in self.empty
            case Scan() | OneRow() | Aggregate(keys=(), is_distinct=False):
                return False
            case InnerJoin():
                return any(map(self.is_empty, relation.inputs))
            case SemiJoin():
                return self.is_empty(relation.left) or (not relation.anti and self.is_empty(relation.right))
            case OuterJoin():
                return self.is_empty(relation.left) and (not relation.is_full or self.is_empty(relation.right))
            case _:
                return all(map(self.is_empty, inputs_of(relation)))

    def _parts(self, union: Union) -> Iterable[str]:
        """Return the SELECT of each input; one without rows stays, because the union's types are common to all."""
        for each in union.inputs:
            select = self._renamed(each, union.outputs)
            yield f"{select} WHERE FALSE" if self.is_empty(each) else select

    def _keeps_all(self, join: SemiJoin) -> bool:
        return join.anti and self.is_empty(join.right)

    def _scan(self, scan: Scan) -> str:
        names = [f"{self.name(name)} AS {alias}" for name, alias in scan.columns]
        if scan.weight is not None:
            names.append(f"{_WEIGHT} AS {scan.weight}")
        return f"SELECT {', '.join(names) or '1 AS one'} FROM {self.views(scan.table, scan.moment)}"

    def _outer_join(self, join: OuterJoin) -> str:
        kind, condition = ("FULL" if join.is_full else "LEFT"), self._text(join.condition)
        return (
            f"SELECT {self._names(join.outputs)} FROM ({self.query(join.left)}) AS r0"
            f" {kind} JOIN ({self.query(join.right)}) AS r1 ON {condition}"
        )

    def _semi_join(self, join: SemiJoin) -> str:
        kind, condition = ("NOT EXISTS" if join.anti else "EXISTS"), self._text(join.condition)
        return (
            f"SELECT {self._names(join.left.outputs)} {self._from([join.left])}"
            f" WHERE {kind} (SELECT 1 {self._from([join.right], alias='s')} WHERE {condition})"
        )

    def _aggregate(self, aggregate: Aggregate) -> str:
        keys = [self.name(each) for each in aggregate.keys]
        if aggregate.is_distinct:
            return f"SELECT DISTINCT {', '.join(keys)} {self._from([aggregate.input])}"
        items = [*keys, *([self._items(aggregate.items)] if aggregate.items else [])]
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {', '.join(items) or ONE_ROW} {self._from([aggregate.input])}{group}"

    def _renamed(self, relation: Relation, names: tuple[str, ...]) -> str:
        items = [f"{old} AS {new}" for old, new in zip(relation.outputs, names, strict=True)]
        return f"SELECT {', '.join(items) or '1 AS one'} {self._from([relation])}"

    def _from(self, inputs: Iterable[Relation], conditions: Iterable[exp.Expr] = (), alias: str = "r") -> str:
        rows = [each for each in inputs if not isinstance(each, OneRow)]
        texts = [f"({self.query(each)}) AS {alias}{number}" for number, each in enumerate(rows)]
        where = [self._text(each) for each in conditions]
        text = f"FROM {', '.join(texts)}" if texts else "FROM (SELECT 1 AS one) AS r0"
        return f"{text} WHERE {' AND '.join(f'({each})' for each in where)}" if where else text

    def _items(self, items: Iterable[Item]) -> str:
        return ", ".join(f"{self._text(value)} AS {self.name(name)}" for name, value in items) or "1 AS one"

    def _text(self, expression: exp.Expr) -> str:
        if any(each.name == WINDOW_CALL for each in expression.find_all(exp.Anonymous)):
            expression = expression.copy()
            for each in expression.find_all(exp.Anonymous):
                if each.name == WINDOW_CALL:
                    each.set("this", "window")
        return expression.sql(self.dialect)

    def _names(self, names: Iterable[str]) -> str:
        return ", ".join(map(self.name, names)) or "1 AS one"
