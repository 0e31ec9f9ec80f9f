"""Convert parse trees of ALTER TABLE to statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lark import Tree

from storage_lib.sql.read.tree_parts import column_of, partition_in, partition_of, path_of, table_in, type_of
from storage_lib.sql.statements.alter_statements import (
    AddColumns,
    AddPrimaryKey,
    AlterOneColumn,
    AlterTable,
    Compact,
    DropColumns,
    DropPartitions,
    ModifyColumns,
    RenameOneColumn,
    RenameTable,
    ResetOptions,
    SetOptions,
    TableChange,
)
from storage_lib.sql.text.source_text import SourceText
from storage_lib.sql.text.tree_values import (
    Node,
    comment_of,
    first,
    has,
    keys_of,
    name_of,
    names_of,
    one,
    properties_of,
    span_of,
    trees,
)


def _alter_table(source: SourceText, tree: Node) -> AlterTable:
    change = next(child for child in reversed(tree.children) if isinstance(child, Tree) and str(child.data) in _CHANGES)
    return AlterTable(
        table=table_in(source, tree),
        change=_CHANGES[str(change.data)](source, change),
        if_exists=has(tree, "if_exists"),
    )


def _add_columns(source: SourceText, tree: Node) -> AddColumns:
    return AddColumns(columns=tuple(column_of(source, each) for each in trees(tree, "new_column")))


def _add_key(source: SourceText, tree: Node) -> AddPrimaryKey:  # noqa: ARG001  as its siblings
    return AddPrimaryKey(columns=names_of(one(tree, "names")))


def _drop_columns(source: SourceText, tree: Node) -> DropColumns:  # noqa: ARG001
    return DropColumns(columns=tuple(path_of(each) for each in trees(tree, "column_path")))


def _drop_partitions(source: SourceText, tree: Node) -> DropPartitions:
    return DropPartitions(
        partitions=tuple(partition_of(source, each) for each in trees(tree, "partition")),
        if_exists=has(tree, "if_exists"),
    )


def _rename_column(source: SourceText, tree: Node) -> RenameOneColumn:  # noqa: ARG001
    return RenameOneColumn(column=path_of(one(tree, "column_path")), new_name=name_of(one(tree, "name")))


def _rename_table(source: SourceText, tree: Node) -> RenameTable:
    return RenameTable(new_name=table_in(source, tree))


def _modify_columns(source: SourceText, tree: Node) -> ModifyColumns:
    columns = tuple(trees(tree, "new_column"))
    for each in columns:
        default = first(each, "default")
        if default is not None:
            message = "MODIFY leaves the default as it is; change it by SET or RESET ('fields.<column>.default-value')"
            raise source.syntax_error(span_of(default)[0], message)
    return ModifyColumns(columns=tuple(column_of(source, each) for each in columns))


def _alter_column(source: SourceText, tree: Node) -> AlterOneColumn:
    new_type, after = first(tree, "new_type"), first(tree, "after")
    nullable = True if has(tree, "drop_not_null") else False if has(tree, "set_not_null") else None
    return AlterOneColumn(
        column=path_of(one(tree, "column_path")),
        type=None if new_type is None else type_of(source, one(new_type, "type")),
        comment=comment_of(tree, "new_comment"),
        nullable=nullable,
        first=has(tree, "first"),
        after=None if after is None else name_of(one(after, "name")),
    )


def _set_options(source: SourceText, tree: Node) -> SetOptions:
    return SetOptions(options=properties_of(source, tree))


def _reset_options(source: SourceText, tree: Node) -> ResetOptions:  # noqa: ARG001
    return ResetOptions(keys=keys_of(one(tree, "keys")))


def _compact(source: SourceText, tree: Node) -> Compact:
    return Compact(partition=partition_in(source, tree))


_CHANGES: Mapping[str, Callable[[SourceText, Node], TableChange]] = {
    "add_columns": _add_columns,
    "add_key": _add_key,
    "drop_columns": _drop_columns,
    "drop_partitions": _drop_partitions,
    "rename_column": _rename_column,
    "rename_table": _rename_table,
    "modify_columns": _modify_columns,
    "alter_column": _alter_column,
    "set_options": _set_options,
    "reset_options": _reset_options,
    "compact": _compact,
}

ALTER_READERS: Mapping[str, Callable[[SourceText, Node], AlterTable]] = {"alter_table": _alter_table}
