"""Convert parse trees of statements about materialized tables to statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

from lark import Tree

from storage_lib.schema.options.materialized_table import Freshness, TargetLag
from storage_lib.schema.options.nearest import did_you_mean
from storage_lib.sql.read.tree_parts import partition_in, query_in, table_in
from storage_lib.sql.statements.materialized_statements import (
    AlterMaterializedTable,
    CreateMaterializedTable,
    DropMaterializedTable,
    ExplainRefresh,
    MaterializedChange,
    MaterializedStatement,
    Refresh,
    Resume,
    SetFreshness,
    SetQuery,
    SetRefreshMode,
    ShowCreateMaterializedTable,
    ShowMaterializedTables,
    Suspend,
)
from storage_lib.sql.text.query_tables import Query
from storage_lib.sql.text.source_text import SourceText
from storage_lib.sql.text.tree_values import (
    Node,
    comment_of,
    first,
    has,
    name_of,
    names_of,
    one,
    properties_of,
    span_of,
    text_of,
    tokens,
    trees,
)

_CLAUSES = {
    "table_comment": "COMMENT",
    "partitioned_by": "PARTITIONED BY",
    "with_options": "WITH",
    "freshness": "FRESHNESS",
    "target_lag": "TARGET_LAG",
    "refresh_mode": "REFRESH_MODE",
}
_UNITS = {"SECOND": "seconds", "MINUTE": "minutes", "HOUR": "hours", "DAY": "days"}
_DAYS_MAX = 36_500
_MODES = ("AUTO", "INCREMENTAL", "FULL")
_MODE_OF_FLINK = "CONTINUOUS"


def _create(source: SourceText, tree: Node) -> CreateMaterializedTable:
    _check_clauses(source, tree)
    with_options = first(tree, "with_options")
    partitioned, mode = first(tree, "partitioned_by"), first(tree, "refresh_mode")
    return CreateMaterializedTable(
        table=table_in(source, tree),
        query=_query(source, tree),
        primary_key=_primary_key(source, first(tree, "elements")),
        partition_by=() if partitioned is None else names_of(one(partitioned, "names")),
        options={} if with_options is None else properties_of(source, with_options),
        comment=comment_of(tree, "table_comment"),
        freshness=_freshness_or_lag(source, tree),
        refresh_mode="auto" if mode is None else _refresh_mode(source, mode),
        if_not_exists=has(tree, "if_not_exists"),
    )


def _check_clauses(source: SourceText, tree: Node) -> None:
    """Raise ``SqlSyntaxError`` for a clause that is repeated, or that follows one that it has to precede."""
    order = list(_CLAUSES)
    last = -1
    for clause in trees(tree, *order):
        place = order.index(str(clause.data))
        name = _CLAUSES[order[place]]
        if place == last:
            raise source.syntax_error(span_of(clause)[0], f"{name} is given twice")
        if place < last:
            problem = f"{name} has to precede {_CLAUSES[order[last]]}; the order is {', '.join(_CLAUSES.values())}, AS"
            raise source.syntax_error(span_of(clause)[0], problem)
        last = place


def _primary_key(source: SourceText, elements: Node | None) -> tuple[str, ...]:
    if elements is None:
        return ()
    keys = list(trees(elements, "primary_key"))
    other = next((each for each in elements.children if isinstance(each, Tree) and each not in keys), None)
    if other is not None:
        problem = "the query gives the columns of a materialized table; only PRIMARY KEY (...) NOT ENFORCED is declared"
        raise source.syntax_error(span_of(other)[0], problem)
    if len(keys) > 1:
        problem = "a table has one primary key; write PRIMARY KEY (a, b) NOT ENFORCED for a key of several columns"
        raise source.syntax_error(span_of(keys[1])[0], problem)
    return names_of(one(keys[0], "names"))


def _query(source: SourceText, tree: Node) -> Query:
    query = query_in(source, tree)
    if query is None:  # the grammar guarantees one
        raise source.syntax_error(len(source.text), "expected a query")
    return query


def _freshness_or_lag(source: SourceText, tree: Node) -> Freshness | None:
    freshness, lag = first(tree, "freshness"), first(tree, "target_lag")
    if lag is None:
        return None if freshness is None else _freshness(source, freshness)
    if freshness is not None:
        problem = "FRESHNESS and TARGET_LAG = DOWNSTREAM exclude each other: readers or a duration decide on a refresh"
        raise source.syntax_error(span_of(lag)[0], problem)
    return _target_lag(source, lag)


def _target_lag(source: SourceText, tree: Node) -> TargetLag:
    name = first(tree, "name")
    if name is not None and name_of(name).lower() == TargetLag.DOWNSTREAM:
        return TargetLag.DOWNSTREAM
    problem = "invalid TARGET_LAG; write TARGET_LAG = DOWNSTREAM, or FRESHNESS = INTERVAL '5' MINUTE for a duration"
    raise source.syntax_error(span_of(one(tree, "name", "interval"))[0], problem)


def _freshness(source: SourceText, tree: Node) -> timedelta:
    interval = one(tree, "interval")
    words = " ".join(text_of(each) for each in tokens(interval)).split()
    number, unit = (*words, "")[:2] if len(words) <= 2 else ("", "")
    known = _UNITS.get(unit.upper().removesuffix("S"))
    if known is None or not (number.isascii() and number.isdigit() and int(number)):
        problem = (
            "invalid FRESHNESS; write a positive whole number of one unit: INTERVAL '5' SECOND, MINUTE, HOUR or DAY"
        )
        raise source.syntax_error(span_of(interval)[0], problem)
    if len(number) > 10 or timedelta(**{known: int(number)}) > timedelta(days=_DAYS_MAX):
        raise source.syntax_error(span_of(interval)[0], f"invalid FRESHNESS; the longest is {_DAYS_MAX} DAY")
    return timedelta(**{known: int(number)})


def _refresh_mode(source: SourceText, tree: Node) -> str:
    name = one(tree, "name")
    mode = name_of(name).upper()
    if mode in _MODES:
        return mode.lower()
    hint = did_you_mean(mode, _MODES)
    if mode == _MODE_OF_FLINK:
        hint = (
            f"; there are {', '.join(_MODES)}: INCREMENTAL computes changes from changes, as CONTINUOUS does in Flink"
        )
    raise source.syntax_error(span_of(name)[0], f"unknown REFRESH_MODE {mode}{hint}")


def _alter(source: SourceText, tree: Node) -> AlterMaterializedTable:
    (change,) = trees(tree, *_CHANGES)
    return AlterMaterializedTable(table=table_in(source, tree), change=_CHANGES[str(change.data)](source, change))


def _refresh(source: SourceText, tree: Node) -> Refresh:
    return Refresh(partition=partition_in(source, tree))


def _suspend(source: SourceText, tree: Node) -> Suspend:  # noqa: ARG001  as its siblings
    return Suspend()


def _resume(source: SourceText, tree: Node) -> Resume:  # noqa: ARG001
    return Resume()


def _set_freshness(source: SourceText, tree: Node) -> SetFreshness:
    return SetFreshness(freshness=_freshness(source, tree))


def _set_target_lag(source: SourceText, tree: Node) -> SetFreshness:
    return SetFreshness(freshness=_target_lag(source, tree))


def _set_refresh_mode(source: SourceText, tree: Node) -> SetRefreshMode:
    return SetRefreshMode(refresh_mode=_refresh_mode(source, tree))


def _set_query(source: SourceText, tree: Node) -> SetQuery:
    return SetQuery(query=_query(source, tree))


_CHANGES: Mapping[str, Callable[[SourceText, Node], MaterializedChange]] = {
    "refresh": _refresh,
    "suspend": _suspend,
    "resume": _resume,
    "freshness": _set_freshness,
    "target_lag": _set_target_lag,
    "refresh_mode": _set_refresh_mode,
    "new_query": _set_query,
}


def _drop(source: SourceText, tree: Node) -> DropMaterializedTable:
    return DropMaterializedTable(table=table_in(source, tree), if_exists=has(tree, "if_exists"))


def _show(source: SourceText, tree: Node) -> ShowMaterializedTables:  # noqa: ARG001
    database, pattern = first(tree, "name"), first(tree, "text")
    return ShowMaterializedTables(
        database=None if database is None else name_of(database),
        pattern=None if pattern is None else text_of(tokens(pattern)[0]),
    )


def _show_create(source: SourceText, tree: Node) -> ShowCreateMaterializedTable:
    return ShowCreateMaterializedTable(table=table_in(source, tree))


def _explain(source: SourceText, tree: Node) -> ExplainRefresh:
    return ExplainRefresh(table=table_in(source, tree))


MATERIALIZED_READERS: Mapping[str, Callable[[SourceText, Node], MaterializedStatement]] = {
    "create_materialized": _create,
    "alter_materialized": _alter,
    "drop_materialized": _drop,
    "show_materialized": _show,
    "show_create_materialized": _show_create,
    "explain_refresh": _explain,
}
