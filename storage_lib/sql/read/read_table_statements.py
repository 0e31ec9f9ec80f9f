"""Convert parse trees of CREATE, DROP and COMMENT ON to statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from storage_lib.sql.read.tree_parts import column_of, expression_of, query_in, table_in, table_of
from storage_lib.sql.statements.table_statements import (
    AlterView,
    CommentOnTable,
    ComputedColumn,
    CreateCatalog,
    CreateDatabase,
    CreateTable,
    CreateView,
    DropCatalog,
    DropDatabase,
    DropTable,
    DropView,
    LikeClause,
    TableStatement,
    Watermark,
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

_PATH = "path"


def _create_table(source: SourceText, tree: Node) -> CreateTable:
    for clause in ("table_comment", "partitioned_by", "with_options", "using", "location", "like"):
        repeated = list(trees(tree, clause))[1:]
        if repeated:
            raise source.syntax_error(span_of(repeated[0])[0], "this clause is given twice")
    elements = first(tree, "elements")
    columns = () if elements is None else tuple(column_of(source, each) for each in trees(elements, "column"))
    using, like = first(tree, "using"), first(tree, "like")
    return CreateTable(
        table=table_in(source, tree),
        columns=columns,
        computed=()
        if elements is None
        else tuple(_computed(source, each) for each in trees(elements, "computed_column")),
        watermarks=() if elements is None else tuple(_watermark(source, each) for each in trees(elements, "watermark")),
        primary_key=_primary_key(source, elements, tuple(each.name for each in columns if each.is_key)),
        partition_by=_partition_by(tree),
        options=_options(source, tree),
        comment=comment_of(tree, "table_comment"),
        using=None if using is None else name_of(one(using, "name")),
        like=None if like is None else _like(source, like),
        query=query_in(source, tree),
        temporary=has(tree, "temporary"),
        if_not_exists=has(tree, "if_not_exists"),
        or_replace=has(tree, "or_replace"),
    )


def _options(source: SourceText, tree: Node) -> dict[str, str]:
    """Return the options of WITH, and LOCATION as the option ``path``."""
    with_options, location = first(tree, "with_options"), first(tree, "location")
    options = {} if with_options is None else properties_of(source, with_options)
    if location is None:
        return options
    if _PATH in options:
        raise source.syntax_error(
            span_of(location)[0], f"LOCATION and option {_PATH} both set the location; leave one of them out"
        )
    return options | {_PATH: text_of(tokens(one(location, "text"))[0])}


def _primary_key(source: SourceText, elements: Node | None, of_columns: tuple[str, ...]) -> tuple[str, ...]:
    declared = [] if elements is None else list(trees(elements, "primary_key"))
    if len(declared) + len(of_columns) > 1:
        again = declared[-1] if declared else elements
        message = "a table has one primary key; write PRIMARY KEY (a, b) NOT ENFORCED for a key of several columns"
        raise source.syntax_error(span_of(again)[0] if again is not None else 0, message)
    return names_of(one(declared[0], "names")) if declared else of_columns


def _partition_by(tree: Node) -> tuple[str, ...]:
    found = first(tree, "partitioned_by")
    return () if found is None else names_of(one(found, "names"))


def _computed(source: SourceText, tree: Node) -> ComputedColumn:
    return ComputedColumn(
        name=name_of(one(tree, "name")),
        expression=expression_of(source, one(tree, "inside")),
        comment=comment_of(tree, "column_comment"),
    )


def _watermark(source: SourceText, tree: Node) -> Watermark:
    return Watermark(column=name_of(one(tree, "name")), strategy=expression_of(source, one(tree, "expression")))


def _like(source: SourceText, tree: Node) -> LikeClause:
    features = tuple(
        (str(action).upper(), str(feature).upper())
        for action, feature in (tokens(each) for each in trees(tree, "like_option"))
    )
    return LikeClause(source=table_in(source, tree), features=features)


def _create_view(source: SourceText, tree: Node) -> CreateView:
    columns = list(trees(tree, "view_column"))
    return CreateView(
        view=table_in(source, tree),
        query=_query(source, tree),
        columns=tuple(name_of(one(each, "name")) for each in columns),
        column_comments={
            name_of(one(each, "name")): comment
            for each in columns
            if (comment := comment_of(each, "column_comment")) is not None
        },
        comment=comment_of(tree, "table_comment"),
        temporary=has(tree, "temporary"),
        if_not_exists=has(tree, "if_not_exists"),
        or_replace=has(tree, "or_replace"),
    )


def _query(source: SourceText, tree: Node) -> Query:
    query = query_in(source, tree)
    if query is None:  # the grammar guarantees one
        raise source.syntax_error(len(source.text), "expected a query")
    return query


def _create_database(source: SourceText, tree: Node) -> CreateDatabase:  # noqa: ARG001  as its siblings
    comment = first(tree, "text")
    return CreateDatabase(
        database=name_of(one(tree, "name")),
        comment=None if comment is None else text_of(tokens(comment)[0]),
        if_not_exists=has(tree, "if_not_exists"),
    )


def _drop_table(source: SourceText, tree: Node) -> DropTable:
    return DropTable(table=table_in(source, tree), if_exists=has(tree, "if_exists"), temporary=has(tree, "temporary"))


def _drop_view(source: SourceText, tree: Node) -> DropView:
    return DropView(view=table_in(source, tree), if_exists=has(tree, "if_exists"), temporary=has(tree, "temporary"))


def _alter_view(source: SourceText, tree: Node) -> AlterView:
    view, new_name = trees(tree, "table_name")
    return AlterView(view=table_of(source, view), new_name=table_of(source, new_name), if_exists=has(tree, "if_exists"))


def _drop_database(source: SourceText, tree: Node) -> DropDatabase:  # noqa: ARG001  as its siblings
    return DropDatabase(
        database=name_of(one(tree, "name")),
        if_exists=has(tree, "if_exists"),
        cascade=any(token.upper() == "CASCADE" for token in tokens(tree, "DROP_MODE")),
    )


def _create_catalog(source: SourceText, tree: Node) -> CreateCatalog:
    return CreateCatalog(
        catalog=name_of(one(tree, "name")),
        options=properties_of(source, tree),
        if_not_exists=has(tree, "if_not_exists"),
    )


def _drop_catalog(source: SourceText, tree: Node) -> DropCatalog:  # noqa: ARG001  as its siblings
    return DropCatalog(catalog=name_of(one(tree, "name")), if_exists=has(tree, "if_exists"))


def _comment_on(source: SourceText, tree: Node) -> CommentOnTable:
    text = first(tree, "text")
    return CommentOnTable(table=table_in(source, tree), comment=None if text is None else text_of(tokens(text)[0]))


TABLE_READERS: Mapping[str, Callable[[SourceText, Node], TableStatement]] = {
    "create_table": _create_table,
    "create_view": _create_view,
    "create_database": _create_database,
    "create_catalog": _create_catalog,
    "drop_table": _drop_table,
    "drop_view": _drop_view,
    "alter_view": _alter_view,
    "drop_database": _drop_database,
    "drop_catalog": _drop_catalog,
    "comment_on": _comment_on,
}
