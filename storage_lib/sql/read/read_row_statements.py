"""Convert parse trees of statements that read and write rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lark import Tree

from storage_lib.sql.read.tree_parts import expression_of, literal_of, partition_in, path_of, table_in, target_in
from storage_lib.sql.statements.parts import Expression, Literal, Target
from storage_lib.sql.statements.row_statements import (
    Analyze,
    Assignment,
    Call,
    Delete,
    Explain,
    Insert,
    Merge,
    MergeClause,
    MergeDelete,
    MergeInsert,
    MergeUpdate,
    RowStatement,
    Select,
    Truncate,
    Update,
)
from storage_lib.sql.text.query_tables import Query, read_query
from storage_lib.sql.text.source_text import SourceText
from storage_lib.sql.text.tree_values import Node, first, has, name_of, names_of, one, span_of, tokens, trees


def _query(source: SourceText, tree: Node) -> Query:
    return read_query(source, *span_of(one(tree, "query")))


def _select(source: SourceText, tree: Node) -> Select:
    return Select(query=_query(source, tree))


def _explain(source: SourceText, tree: Node) -> Explain:
    insert = first(tree, "insert")
    modes = tokens(tree, "EXPLAIN_MODE")
    mode = str(modes[0]).upper() if modes else ""
    if insert is None:
        return Explain(query=_query(source, tree), mode=mode)
    explained = _insert(source, insert)
    return Explain(query=explained.query, mode=mode, insert=explained)


def _insert(source: SourceText, tree: Node) -> Insert:
    return Insert(
        target=target_in(source, tree),
        query=_query(source, tree),
        overwrite=has(tree, "overwrite"),
        partition=partition_in(source, tree),
        columns=names_of(first(tree, "names")),
        by_name=has(tree, "by_name"),
    )


def _delete(source: SourceText, tree: Node) -> Delete:
    return Delete(target=target_in(source, tree, alias=first(tree, "alias")), condition=_condition(source, tree))


def _update(source: SourceText, tree: Node) -> Update:
    return Update(
        target=target_in(source, tree, alias=first(tree, "alias")),
        assignments=_assignments(source, tree),
        condition=_condition(source, tree),
    )


def _condition(source: SourceText, tree: Node) -> Expression | None:
    found = first(tree, "rest")
    return None if found is None else expression_of(source, found)


def _assignments(source: SourceText, tree: Node) -> tuple[Assignment, ...]:
    found: dict[str, Assignment] = {}
    for each in trees(tree, "assignment"):
        column = path_of(one(each, "column_path"))
        if column in found:
            raise source.syntax_error(span_of(each)[0], f"column {column!r} is set twice")
        found[column] = Assignment(column=column, value=expression_of(source, one(each, "expression")))
    return tuple(found.values())


def _merge(source: SourceText, tree: Node) -> Merge:
    before = [child for child in tree.children if isinstance(child, Tree)]
    place = next(index for index, child in enumerate(before) if child.data == "source")
    aliases = {index < place: child for index, child in enumerate(before) if child.data == "alias"}
    source_tree = before[place]
    of_source = aliases.get(False)
    return Merge(
        target=target_in(source, tree, alias=aliases.get(True)),
        source=_merge_source(source, source_tree),
        source_alias=None if of_source is None else name_of(one(of_source, "name")),
        condition=expression_of(source, one(tree, "condition")),
        clauses=tuple(_merge_clause(source, each) for each in trees(tree, "merge_clause")),
    )


def _merge_source(source: SourceText, tree: Node) -> Target | Query:
    return _query(source, tree) if has(tree, "query") else target_in(source, tree)


def _merge_clause(source: SourceText, tree: Node) -> MergeClause:
    condition = first(tree, "and_condition")
    clause = MergeClause(
        matches_target=not has(tree, "not_matched"),
        matches_source=not has(tree, "not_matched_by_source"),
        condition=None if condition is None else expression_of(source, one(condition, "condition")),
        action=_merge_action(source, tree),
    )
    if clause.matches_target is isinstance(clause.action, MergeInsert):
        message = (
            "a matching row already exists, so WHEN MATCHED can't INSERT; use UPDATE"
            if clause.matches_target
            else "no row of the target matches, so there is nothing to UPDATE or DELETE; use INSERT"
        )
        raise source.syntax_error(span_of(tree)[0], message)
    if not clause.matches_source and isinstance(clause.action, MergeUpdate) and not clause.action.assignments:
        raise source.syntax_error(span_of(tree)[0], "SET * takes the source's columns, and no row of it matches here")
    return clause


def _merge_action(source: SourceText, tree: Node) -> MergeUpdate | MergeDelete | MergeInsert:
    action = next(child for child in reversed(tree.children) if isinstance(child, Tree))
    match action.data:
        case "merge_update":
            return MergeUpdate(assignments=_assignments(source, action))
        case "merge_update_all":
            return MergeUpdate()
        case "merge_delete":
            return MergeDelete()
        case "merge_insert":
            columns = names_of(one(action, "names"))
            values = tuple(expression_of(source, each) for each in trees(action, "expression"))
            if len(columns) != len(values):
                message = f"INSERT names {len(columns)} columns and gives {len(values)} values"
                raise source.syntax_error(span_of(action)[0], message)
            return MergeInsert(columns=columns, values=values)
        case _:
            return MergeInsert()


def _truncate(source: SourceText, tree: Node) -> Truncate:
    return Truncate(table=table_in(source, tree), partition=partition_in(source, tree))


def _analyze(source: SourceText, tree: Node) -> Analyze:
    listed = first(tree, "names")
    named = names_of(tree if listed is None else listed)
    return Analyze(table=table_in(source, tree), columns=named or (None if has(tree, "all_columns") else ()))


def _call(source: SourceText, tree: Node) -> Call:
    by_place: list[Literal] = []
    by_name: dict[str, Literal] = {}
    for each in trees(tree, "argument"):
        start, _ = span_of(each)
        value = next(literal_of(child) for child in reversed(each.children) if isinstance(child, Tree))
        named = first(each, "name")
        if named is None:
            if by_name:
                raise source.syntax_error(start, "positional arguments have to precede named ones")
            by_place.append(value)
        elif name_of(named) in by_name:
            raise source.syntax_error(start, f"argument {name_of(named)!r} is given twice")
        else:
            by_name[name_of(named)] = value
    return Call(procedure=names_of(tree), arguments=tuple(by_place), named=by_name)


ROW_READERS: Mapping[str, Callable[[SourceText, Node], RowStatement]] = {
    "query_statement": _select,
    "explain": _explain,
    "insert": _insert,
    "delete": _delete,
    "update": _update,
    "merge": _merge,
    "truncate": _truncate,
    "analyze": _analyze,
    "call": _call,
}
