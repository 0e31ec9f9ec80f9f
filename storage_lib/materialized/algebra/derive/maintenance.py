"""How each operator of a query is maintained, in words for EXPLAIN REFRESH."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from storage_lib.materialized.algebra.tree.expressions import column, replaced
from storage_lib.materialized.algebra.tree.relational_operators import (
    Aggregate,
    Filter,
    InnerJoin,
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

__all__ = ["MaintainedOperator", "maintained", "written"]

_LONGEST_TEXT = 200
_FROM_STORED = "adds the changes to the stored rows; reads its input again if so many go that others follow"


@dataclass(frozen=True, slots=True)
class MaintainedOperator:
    """One operator of a query.

    ``text`` is its condition, keys or columns, in the sources' names. ``how`` is "incremental" (computed from the
    changes), "accumulators" (changes are added to sums and counts), "recomputed" (computed again for the groups or
    rows that a change touches) or "full" (computed again as a whole); ``why`` explains it.
    """

    name: str
    text: str
    how: str
    why: str

    def __str__(self) -> str:
        """Return the operator as a line of text."""
        return f"{self.how}: {self.name} {self.text}{f' ({self.why})' if self.why else ''}".rstrip()


def maintained(relation: Relation, accumulated: Aggregate | None = None) -> tuple[MaintainedOperator, ...]:
    """Return the operators of a tree, from its root to its sources; ``accumulated`` is kept by accumulators."""
    names = written(relation)
    if isinstance(relation, TopRows):
        first = MaintainedOperator("first rows", _first(relation, names), "incremental", _FROM_STORED)
        return (first, *_operators(relation.input, names, accumulated))
    return tuple(_operators(relation, names, accumulated))


def _operators(
    relation: Relation, names: Mapping[str, exp.Expr], accumulated: Aggregate | None
) -> Iterable[MaintainedOperator]:
    own = _operator(relation, names)
    if own is not None and relation is accumulated:
        yield replace(own, how="accumulators", why="adds the changes to sums and counts of the groups")
    elif own is not None:
        yield own
    for each in inputs_of(relation):
        yield from _operators(each, names, accumulated)


def written(relation: Relation) -> dict[str, exp.Expr]:
    """Return what each column of a tree is computed from, in the names of the sources' columns."""
    names: dict[str, exp.Expr] = {}
    for each in inputs_of(relation):
        names |= written(each)
    match relation:
        case Scan():
            table = relation.table.rpartition(".")[2]
            names |= {name: exp.column(own, table=table) for own, name in relation.columns}
        case Project() | Aggregate() | Window():
            names |= {name: replaced(value, names) for name, value in relation.items if name not in names}
        case Union():
            first = zip(relation.outputs, relation.inputs[0].outputs, strict=True)
            names |= {name: names.get(other, column(other)) for name, other in first}
        case _:
            pass
    return names


def _operator(relation: Relation, names: Mapping[str, exp.Expr]) -> MaintainedOperator | None:
    match relation:
        case Scan():
            text = f"{relation.table} ({', '.join(own for own, _ in relation.columns)})"
            return MaintainedOperator("scan", text, "incremental", "reads the rows that changed")
        case Filter():
            why = "applied to the rows that changed"
            return MaintainedOperator("filter", _text([relation.condition], names), "incremental", why)
        case InnerJoin():
            why = "joins the changes of each side to the rows of the other sides"
            return MaintainedOperator("inner join", _text(relation.conditions, names), "incremental", why)
        case OuterJoin():
            name = "full outer join" if relation.is_full else "outer join"
            why = "as an inner join; checks rows without a match again where the other side changed"
            return MaintainedOperator(name, _text([relation.condition], names), "incremental", why)
        case SemiJoin():
            name = "anti join" if relation.anti else "semi join"
            why = "checks rows that changed, and rows whose matches changed"
            return MaintainedOperator(name, _text([relation.condition], names), "incremental", why)
        case Union():
            return MaintainedOperator("union", f"{len(relation.inputs)} inputs", "incremental", "unites the changes")
        case Aggregate():
            return _aggregate(relation, names)
        case TopRows():
            return MaintainedOperator("first rows", _first(relation, names), "full", "sorts all rows again")
        case Window():
            why = "computes the partitions again that a change touches"
            return MaintainedOperator("window", _items(relation.items, names), "recomputed", why)
        case _:
            return None


def _aggregate(relation: Aggregate, names: Mapping[str, exp.Expr]) -> MaintainedOperator:
    keys = _text([column(each) for each in relation.keys], names, separator=", ")
    if relation.is_distinct:
        return MaintainedOperator("distinct", keys, "recomputed", "checks again the rows that a change adds or removes")
    items = _items(relation.items, names)
    if relation.keys:
        text = f"{items} by {keys}" if items else f"by {keys}"
        return MaintainedOperator("aggregate", text, "recomputed", "computes the groups again that a change touches")
    return MaintainedOperator("aggregate", items, "full", "one group holds all rows")


def _first(top: TopRows, names: Mapping[str, exp.Expr]) -> str:
    return f"{top.count} by {_text(top.order, names, separator=', ')}"


def _items(items: Iterable[tuple[str, exp.Expr]], names: Mapping[str, exp.Expr]) -> str:
    return _text([value for _, value in items], names, separator=", ")


def _text(expressions: Iterable[exp.Expr], names: Mapping[str, exp.Expr], separator: str = " AND ") -> str:
    text = separator.join(replaced(each, names).sql("spark") for each in expressions)
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 3]}..."
