"""Convert the parts of a parse tree that several statements share."""

from __future__ import annotations

from storage_lib.sql.statements.parts import Expression, Literal, NamedTable, PartitionClause, Target
from storage_lib.sql.statements.table_statements import ColumnDefinition
from storage_lib.sql.text.query_clauses import read_hint
from storage_lib.sql.text.query_tables import Query, read_query
from storage_lib.sql.text.source_text import SourceText
from storage_lib.sql.text.tree_values import (
    Node,
    comment_of,
    first,
    has,
    name_of,
    names_of,
    one,
    span_of,
    text_of,
    tokens,
    trees,
)

_PARTS_MAX = 3
_HINT_END = "*/"


def table_in(source: SourceText, tree: Node) -> NamedTable:
    """Return the table that is a child of ``tree``."""
    return table_of(source, one(tree, "table_name"))


def table_of(source: SourceText, tree: Node) -> NamedTable:
    """Convert a ``table_name``; ``SqlSyntaxError`` if the name has more than three parts."""
    parts = names_of(tree)
    start, _ = span_of(tree)
    if len(parts) > _PARTS_MAX:
        raise source.syntax_error(start, "a table's name has at most three parts: catalog.database.table")
    return NamedTable(parts=parts, start=start)


def target_in(source: SourceText, tree: Node, *, alias: Node | None = None) -> Target:
    """Return the table that is a child of ``tree``, with its hint and the name in ``alias``."""
    hint = first(tree, "hint")
    return Target(
        table=table_in(source, tree),
        hint={} if hint is None else hint_of(source, hint),
        alias=None if alias is None else name_of(one(alias, "name")),
    )


def hint_of(source: SourceText, tree: Node) -> dict[str, str]:
    """Return the options of a ``hint``."""
    start, end = span_of(tree)
    return read_hint(source, start, end)


def query_in(source: SourceText, tree: Node) -> Query | None:
    """Return the query that is a child of ``tree``; None without one."""
    found = first(tree, "query")
    return None if found is None else read_query(source, *span_of(found))


def expression_of(source: SourceText, tree: Node) -> Expression:
    """Return the text of a tree as an expression."""
    start, end = span_of(tree)
    return Expression(text=source.text[start:end], start=start)


def path_of(tree: Node) -> str:
    """Return the name of a column; that of a nested one as ``a.b``."""
    return ".".join(names_of(tree))


def literal_of(tree: Node) -> Literal:
    """Return the value of a constant."""
    match tree.data:
        case "text_literal":
            return text_of(tokens(tree)[0])
        case "number_literal":
            text = str(tokens(tree)[0])
            return float(text) if "." in text else int(text)
        case "true_literal":
            return True
        case "false_literal":
            return False
        case _:
            return None


def partition_in(source: SourceText, tree: Node) -> PartitionClause | None:
    """Return the partition that is a child of ``tree``; None without one."""
    found = first(tree, "partition")
    return None if found is None else partition_of(source, found)


def partition_of(source: SourceText, tree: Node) -> PartitionClause:
    """Convert a ``partition``; ``SqlSyntaxError`` for a repeated column."""
    values: dict[str, Literal] = {}
    dynamic: list[str] = []
    for each in trees(tree, "partition_value"):
        name_tree, *literal = [child for child in each.children if not isinstance(child, str)]
        name = name_of(name_tree)
        if name in values or name in dynamic:
            raise source.syntax_error(span_of(each)[0], f"partition column {name!r} is given twice")
        if literal:
            values[name] = literal_of(literal[0])
        else:
            dynamic.append(name)
    return PartitionClause(values=values, dynamic=tuple(dynamic))


def column_of(source: SourceText, tree: Node) -> ColumnDefinition:
    """Convert a ``column`` or ``new_column``."""
    _check_default(source, tree)
    path = first(tree, "column_path")
    after = first(tree, "after")
    return ColumnDefinition(
        name=name_of(one(tree, "name")) if path is None else path_of(path),
        type=type_of(source, one(tree, "type")),
        nullable=not has(tree, "not_null"),
        is_key=has(tree, "column_key"),
        comment=comment_of(tree, "column_comment"),
        metadata=_metadata_of(source, tree),
        first=has(tree, "first"),
        after=None if after is None else name_of(one(after, "name")),
    )


def _check_default(source: SourceText, tree: Node) -> None:
    """Accept DEFAULT NULL, which is what a column without DEFAULT has; raise ``SqlSyntaxError`` for other values.

    SQL gives the value to existing rows as well, which the option of defaults does not.
    """
    found = first(tree, "default")
    if found is None:
        return
    position = span_of(found)[0]
    if not has(found, "null_literal"):
        message = (
            "DEFAULT accepts only NULL; declare another value for rows written from now on by the option "
            "'fields.<column>.default-value', in WITH or by ALTER TABLE ... SET; existing rows read null"
        )
        raise source.syntax_error(position, message)
    if has(tree, "not_null"):
        raise source.syntax_error(position, "a column that is NOT NULL can't have DEFAULT NULL; leave one of them out")


def _metadata_of(source: SourceText, tree: Node) -> str | None:
    """Return the metadata of a column, by default that with its own name; None without METADATA."""
    found = first(tree, "metadata")
    if found is None:
        return None
    if has(found, "virtual"):
        message = "METADATA VIRTUAL is not stored; columns with metadata are filled by ingest, and stored"
        raise source.syntax_error(span_of(found)[0], message)
    text = first(found, "text")
    if text is not None:
        return text_of(tokens(text)[0])
    path = first(tree, "column_path")
    return name_of(one(tree, "name")) if path is None else path_of(path)


def type_of(source: SourceText, tree: Node) -> str:
    """Return the text of a column's type as written."""
    start, end = span_of(tree)
    return source.text[start:end]
