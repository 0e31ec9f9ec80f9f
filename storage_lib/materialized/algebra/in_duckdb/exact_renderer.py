"""SQL text for DuckDB of a tree of operators, with Spark's values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from storage_lib.materialized.algebra.in_duckdb.column_value_types import ColumnValueTypes, ScanTypes
from storage_lib.materialized.algebra.in_duckdb.duckdb_text import grouped, identifier
from storage_lib.materialized.algebra.in_duckdb.not_exact import NotExactError
from storage_lib.materialized.algebra.in_duckdb.scalar_text import Value, converted
from storage_lib.materialized.algebra.in_duckdb.value_type import DOUBLE
from storage_lib.materialized.algebra.query_sources import Views
from storage_lib.materialized.algebra.render.statement import ONE_ROW, Renderer
from storage_lib.materialized.algebra.tree.relational_operators import (
    Aggregate,
    Item,
    Relation,
    SemiJoin,
    TopRows,
    Union,
    Window,
)

__all__ = ["ExactDuckDb", "ExactRenderer"]


@dataclass(frozen=True, slots=True)
class ExactRenderer(Renderer):
    """Writes operators with the types that their columns have in Spark; raises ``NotExactError`` where it can't."""

    types: ColumnValueTypes = field(kw_only=True)

    def query(self, relation: Relation) -> str:
        """Return the SELECT statement whose columns are ``relation.outputs``, in order."""
        self.types.learn(relation)
        match relation:
            case Aggregate():
                keys = [self._key(each) for each in relation.keys]
                names = [f"{key} AS {self.name(each)}" for key, each in zip(keys, relation.keys, strict=True)]
                if relation.is_distinct:
                    return f"SELECT DISTINCT {', '.join(names)} {self._from([relation.input])}"
                items = [*names, *self._computed(relation.items, self.types.groups.value)]
                group = f" GROUP BY {', '.join(keys)}" if keys else ""
                return f"SELECT {', '.join(items) or ONE_ROW} {self._from([relation.input])}{group}"
            case Window():
                names = [self.name(each) for each in relation.input.outputs]
                items = self._computed(relation.items, self.types.groups.window)
                return f"SELECT {', '.join([*names, *items])} {self._from([relation.input])}"
            case TopRows():
                rows = f"SELECT {self._names(relation.outputs)} {self._from([relation.input])}"
                order = self.types.groups.order(list(relation.order))
                return f"{rows} ORDER BY {order} LIMIT {relation.count}"
            case SemiJoin() if not self._keeps_all(relation):
                kind = "ANTI" if relation.anti else "SEMI"
                return (
                    f"SELECT {self._names(relation.outputs)} FROM ({self.query(relation.left)}) AS r0"
                    f" {kind} JOIN ({self.query(relation.right)}) AS r1 ON {self._text(relation.condition)}"
                )
            case _:
                return Renderer.query(self, relation)

    def name(self, name: str) -> str:
        """Return an identifier in quotes."""
        return identifier(name)

    def _key(self, column: str) -> str:
        """Return a column to group by."""
        name = self.name(column)
        return grouped(name) if self.types.known[column] == DOUBLE else name

    def _items(self, items: Iterable[Item]) -> str:
        return ", ".join(self._computed(items, self.types.scalars.value)) or "1 AS one"

    def _computed(self, items: Iterable[Item], translate: Callable[[exp.Expr], Value]) -> list[str]:
        found = []
        for name, expression in items:
            value = translate(expression)
            is_typed = isinstance(expression, exp.Column) or value.text == "NULL"
            text = value.text if is_typed else f"CAST({value.text} AS {value.type.duckdb})"
            found.append(f"{text} AS {self.name(name)}")
        return found

    def _parts(self, union: Union) -> Iterable[str]:
        # Each input is converted to the union's types.
        filled = [each for each in union.inputs if not self.is_empty(each)] or union.inputs[:1]
        return (self._renamed(each, union.outputs) for each in filled)

    def _renamed(self, relation: Relation, names: tuple[str, ...]) -> str:
        query = self._from([relation])
        items = []
        for old, new in zip(relation.outputs, names, strict=True):
            value = Value(self.name(old), self.types.known[old])
            items.append(f"{converted(value, self.types.known[new]).text} AS {self.name(new)}")
        return f"SELECT {', '.join(items) or '1 AS one'} {query}"

    def _text(self, expression: exp.Expr) -> str:
        return self.types.scalars.condition(expression).text


@dataclass(frozen=True, slots=True)
class ExactDuckDb:
    """A dialect: DuckDB's, with the values of Spark, over sources with columns of known types."""

    of_source: ScanTypes

    def renderer(self, views: Views, prefix: str = "") -> Renderer:
        """Return a renderer, whose methods raise ``NotExactError`` for what DuckDB may compute in another way."""
        return ExactRenderer(views, "duckdb", prefix, types=ColumnValueTypes(self.of_source))

    def types_of(self, relation: Relation) -> tuple[str, ...]:
        """Return the types of an operator's columns, in Spark's words. Raises ``NotExactError``."""
        types = ColumnValueTypes(self.of_source)
        types.learn(relation)
        found = [types.known[each] for each in relation.outputs]
        if any(each.spark == "void" for each in found):
            raise NotExactError("a column of NULL")
        return tuple(each.spark for each in found)
