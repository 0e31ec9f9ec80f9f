"""Convert a statement's text to a statement: one function per grammar rule, looked up by the rule's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from lark import Tree

from storage_lib.sql.read.read_alter_statements import ALTER_READERS
from storage_lib.sql.read.read_materialized_statements import MATERIALIZED_READERS
from storage_lib.sql.read.read_row_statements import ROW_READERS
from storage_lib.sql.read.read_show_describe import LOOK_READERS
from storage_lib.sql.read.read_table_statements import TABLE_READERS
from storage_lib.sql.statements.alter_statements import AlterTable
from storage_lib.sql.statements.materialized_statements import MaterializedStatement
from storage_lib.sql.statements.row_statements import RowStatement
from storage_lib.sql.statements.show_describe import LookStatement
from storage_lib.sql.statements.table_statements import TableStatement
from storage_lib.sql.text.grammar import parse_tree
from storage_lib.sql.text.source_text import SourceText
from storage_lib.sql.text.tree_values import Node

Statement: TypeAlias = TableStatement | AlterTable | MaterializedStatement | RowStatement | LookStatement

_READERS: Mapping[str, Callable[[SourceText, Node], Statement]] = {
    **TABLE_READERS,
    **ALTER_READERS,
    **MATERIALIZED_READERS,
    **ROW_READERS,
    **LOOK_READERS,
}


def parse(text: str, *, first_line: int = 1) -> Statement:
    """Parse one statement. Does not need a session or a catalog.

    ``first_line`` is the line number of the text's first line. Raises ``SqlSyntaxError`` with line, column and the
    expected tokens.
    """
    source = SourceText(text=text, first_line=first_line)
    tree = parse_tree(source)
    (statement,) = (child for child in tree.children if isinstance(child, Tree))
    return _READERS[str(statement.data)](source, statement)
