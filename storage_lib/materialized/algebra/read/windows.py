"""Window functions of a SELECT."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from storage_lib.materialized.algebra.names import Names
from storage_lib.materialized.algebra.read.functions import check_aggregate
from storage_lib.materialized.algebra.read.not_incremental import NotIncrementalError
from storage_lib.materialized.algebra.read.scope import in_tree
from storage_lib.materialized.algebra.read.subqueries import Subqueries
from storage_lib.materialized.algebra.tree.expressions import column
from storage_lib.materialized.algebra.tree.relational_operators import Item, Project, Relation, Window

__all__ = ["windowed"]

_RANKS = (
    exp.RowNumber,
    exp.Rank,
    exp.DenseRank,
    exp.PercentRank,
    exp.CumeDist,
    exp.Ntile,
    exp.Lag,
    exp.Lead,
    exp.FirstValue,
    exp.LastValue,
    exp.First,
    exp.Last,
    exp.NthValue,
)
_LAST = (exp.LastValue, exp.Last, exp.NthValue)


def windowed(
    names: Names,
    subqueries: Subqueries,
    relation: Relation,
    values: Sequence[exp.Expr],
    condition: exp.Expr | None,
) -> tuple[Relation, list[exp.Expr], exp.Expr | None]:
    """Return the rows with computed window functions, and expressions over them, translated."""
    translated: list[exp.Expr] = []
    for each in [*values, *([] if condition is None else [condition])]:
        relation, value = subqueries.without_queries(relation, each)
        translated.append(value)
    windows: list[exp.Window] = []
    for value in translated:
        windows += [each for each in _windows(value) if each not in windows]
    by: list[tuple[exp.Expr, str]] = []
    partitions: dict[tuple[str, ...], list[exp.Window]] = {}
    for each in windows:
        _check(each)
        partitions.setdefault(tuple(sorted({key.sql() for key in each.args["partition_by"]})), []).append(each)
    for same in partitions.values():
        relation, more = _window(names, relation, same)
        by += more

    def replace(node: exp.Expr) -> exp.Expr:
        found = next((name for each, name in by if node == each), None)
        return node if found is None else in_tree(found)

    replaced = [each.transform(replace, copy=False) for each in translated]
    return relation, replaced[: len(values)], None if condition is None else replaced[-1]


def _window(
    names: Names, relation: Relation, windows: Sequence[exp.Window]
) -> tuple[Window, list[tuple[exp.Expr, str]]]:
    keys = {each.sql(): each for each in windows[0].args["partition_by"]}
    columns: dict[str, Item] = {}
    for text, each in keys.items():
        columns[text] = (each.name, each) if isinstance(each, exp.Column) else (names.column(), each)
    added = tuple(item for item in columns.values() if item[0] not in relation.outputs)
    if added:
        relation = Project(relation, (*((name, column(name)) for name in relation.outputs), *added))
    items: list[Item] = []
    by: list[tuple[exp.Expr, str]] = []
    for each in windows:
        window = each.copy()
        window.set("partition_by", [column(columns[key.sql()][0]) for key in each.args["partition_by"]])
        name = names.column()
        items.append((name, window))
        by.append((each, name))
    return Window(relation, tuple(name for name, _ in columns.values()), tuple(items)), by


def _windows(value: exp.Expr) -> Iterator[exp.Window]:
    for node in value.walk(prune=lambda each: isinstance(each, exp.Window)):
        if isinstance(node, exp.Window):
            yield node


def _check(window: exp.Window) -> None:
    if window.args.get("alias") or window.args.get("first") or window.args.get("over") not in (None, "OVER"):
        raise NotIncrementalError("a named window has no rule; write its definition after OVER")
    if not window.args.get("partition_by"):
        raise NotIncrementalError("a window without PARTITION BY reads all rows")
    function = window.this
    while isinstance(function, exp.IgnoreNulls | exp.RespectNulls):
        function = function.this
    if isinstance(function, _LAST) and not _is_by_rows(window):
        # Rows that tie share a frame and so a value, but which of them is the last one is open.
        raise NotIncrementalError(f"{function.sql('spark')} needs a frame of ROWS")
    if not isinstance(function, _RANKS):
        check_aggregate(function)


def _is_by_rows(window: exp.Window) -> bool:
    spec = window.args.get("spec")
    return spec is not None and str(spec.args.get("kind") or "").upper() == "ROWS"
