"""Table declarations: a single CREATE TABLE statement, parsed without a session and a catalog."""

from __future__ import annotations

from storage_lib.catalog.table_descriptor import TableDescriptor
from storage_lib.errors import InvalidInputError
from storage_lib.schema.evolution.schema_changes import type_of
from storage_lib.sql.definition.table_definition import plain_descriptor_of
from storage_lib.sql.read.tree_reader import parse
from storage_lib.sql.statements.table_statements import CreateTable

_CONNECTOR = "connector"


def declared_table(text: str) -> tuple[tuple[str, ...], TableDescriptor]:
    """Parse a declaration; return the parts of the table's name, and its descriptor.

    Raises ``SqlSyntaxError``, and ``InvalidInputError`` for another statement or for a table that only a session can
    create: AS SELECT, LIKE, OR REPLACE, temporary, of Spark, or with computed columns.
    """
    statement = parse(text)
    if not isinstance(statement, CreateTable):
        message = "not a table declaration; write one CREATE TABLE name (column TYPE, ...)"
        raise InvalidInputError(message)
    of_others = {
        "AS SELECT": statement.query is not None,
        "LIKE": statement.like is not None,
        "TEMPORARY": statement.temporary,
        "OR REPLACE": statement.or_replace,
        "USING": statement.using is not None,
        f"'{_CONNECTOR}'": _CONNECTOR in statement.options,
        "a computed column": bool(statement.computed),
    }
    if wrong := next((what for what, is_there in of_others.items() if is_there), None):
        message = (
            f"table {statement.table}: a declaration can't have {wrong}; run the statement in an SQL session instead"
        )
        raise InvalidInputError(message)
    types = {each.name: str(type_of(each.type)) for each in statement.columns}
    for each in statement.watermarks:
        if not types.get(each.column, "TIMESTAMP").startswith("TIMESTAMP"):
            message = (
                f"table {statement.table}: WATERMARK FOR {each.column}: that column is {types[each.column]}; "
                "a watermark follows a TIMESTAMP or a TIMESTAMP_LTZ"
            )
            raise InvalidInputError(message)
    return statement.table.parts, plain_descriptor_of(statement)
