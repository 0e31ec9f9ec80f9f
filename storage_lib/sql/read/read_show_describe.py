"""Convert parse trees of SHOW, DESCRIBE, USE, SET and RESET to statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from storage_lib.sql.read.tree_parts import partition_in, table_in
from storage_lib.sql.statements.show_describe import (
    Describe,
    DescribeDatabase,
    LookStatement,
    ResetOption,
    SetOption,
    ShowCatalogs,
    ShowColumns,
    ShowCreateTable,
    ShowDatabases,
    ShowOptions,
    ShowPartitions,
    ShowTables,
    ShowViews,
    Use,
)
from storage_lib.sql.text.source_text import SourceText
from storage_lib.sql.text.tree_values import Node, first, name_of, one, text_of, tokens, trees


def _describe(source: SourceText, tree: Node) -> Describe:
    partition = partition_in(source, tree)
    return Describe(
        table=table_in(source, tree),
        extended=bool(tokens(tree, "EXTENDED", "DETAIL")) or partition is not None,
        partition=partition,
    )


def _describe_database(source: SourceText, tree: Node) -> DescribeDatabase:  # noqa: ARG001  as its siblings
    return DescribeDatabase(database=name_of(one(tree, "name")))


def _pattern(tree: Node) -> str | None:
    found = first(tree, "text")
    return None if found is None else text_of(tokens(found)[0])


def _show_catalogs(source: SourceText, tree: Node) -> ShowCatalogs:  # noqa: ARG001
    return ShowCatalogs(pattern=_pattern(tree))


def _show_databases(source: SourceText, tree: Node) -> ShowDatabases:  # noqa: ARG001
    catalog = first(tree, "name")
    return ShowDatabases(catalog=None if catalog is None else name_of(catalog), pattern=_pattern(tree))


def _show_tables(source: SourceText, tree: Node) -> ShowTables:  # noqa: ARG001
    names = [name_of(each) for each in trees(tree, "name")]
    return ShowTables(
        catalog=names[0] if len(names) == 2 else None,
        database=names[-1] if names else None,
        pattern=_pattern(tree),
    )


def _show_views(source: SourceText, tree: Node) -> ShowViews:  # noqa: ARG001
    database = first(tree, "name")
    return ShowViews(database=None if database is None else name_of(database), pattern=_pattern(tree))


def _show_create(source: SourceText, tree: Node) -> ShowCreateTable:
    return ShowCreateTable(table=table_in(source, tree))


def _show_partitions(source: SourceText, tree: Node) -> ShowPartitions:
    return ShowPartitions(table=table_in(source, tree), partition=partition_in(source, tree))


def _show_columns(source: SourceText, tree: Node) -> ShowColumns:
    return ShowColumns(table=table_in(source, tree))


def _show_options(source: SourceText, tree: Node) -> ShowOptions:
    table = None if first(tree, "table_name") is None else table_in(source, tree)
    return ShowOptions(table=table, pattern=_pattern(tree))


def _use(source: SourceText, tree: Node) -> Use:  # noqa: ARG001
    return Use(database=name_of(one(tree, "name")))


def _setting(tree: Node, rule: str) -> str | None:
    found = first(tree, rule)
    return None if found is None else text_of(tokens(found)[0]).strip()


def _set_option(source: SourceText, tree: Node) -> SetOption:  # noqa: ARG001
    return SetOption(key=_setting(tree, "setting_key"), value=_setting(tree, "setting_value"))


def _reset_option(source: SourceText, tree: Node) -> ResetOption:  # noqa: ARG001
    return ResetOption(key=_setting(tree, "setting_key"))


LOOK_READERS: Mapping[str, Callable[[SourceText, Node], LookStatement]] = {
    "describe": _describe,
    "describe_database": _describe_database,
    "show_catalogs": _show_catalogs,
    "show_databases": _show_databases,
    "show_tables": _show_tables,
    "show_views": _show_views,
    "show_create": _show_create,
    "show_partitions": _show_partitions,
    "show_columns": _show_columns,
    "show_options": _show_options,
    "use": _use,
    "set_option": _set_option,
    "reset_option": _reset_option,
}
