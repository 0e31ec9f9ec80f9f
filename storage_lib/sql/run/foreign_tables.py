"""Statements about Spark's own tables (CREATE TABLE with a ``connector`` or USING a format), which Spark runs."""

from __future__ import annotations

from collections.abc import Mapping

from storage_lib.errors import InvalidInputError
from storage_lib.sql.query.query_runner import rewritten
from storage_lib.sql.state.result import Result
from storage_lib.sql.state.session_state import SessionState
from storage_lib.sql.state.settings import RUNTIME_MODE, RuntimeMode
from storage_lib.sql.state.spark_words import errors_in_words
from storage_lib.sql.statements.parts import NamedTable
from storage_lib.sql.statements.row_statements import Insert
from storage_lib.sql.statements.table_statements import CreateTable
from storage_lib.sql.text.query_tables import quoted
from storage_lib.sql.text.source_text import SourceText

FOREIGN_FORMAT = "connector"


def create_foreign_table(state: SessionState, statement: CreateTable, source: SourceText) -> Result:
    """Let Spark create a table in one of its own formats in its catalog, where queries of this session find it.

    Raises ``InvalidInputError`` for properties that Spark tables do not support.
    """
    format_name = statement.using or statement.options[FOREIGN_FORMAT]
    if statement.using is not None and FOREIGN_FORMAT in statement.options:
        message = f"table {statement.table}: USING and option connector both name a format; leave one of them out"
        raise InvalidInputError(message)
    _refuse_ours(statement, format_name)
    words = ["CREATE TABLE"]
    words += ["IF NOT EXISTS"] if statement.if_not_exists else []
    words.append(_name(statement.table))
    if statement.columns:
        columns = ", ".join(
            _column(each.name, each.type, each.comment, nullable=each.nullable) for each in statement.columns
        )
        words.append(f"({columns})")
    words.append(f"USING {quoted(format_name)}")
    options = {key: value for key, value in statement.options.items() if key != FOREIGN_FORMAT}
    words += [f"OPTIONS ({_spelled(options)})"] if options else []
    words += [f"PARTITIONED BY ({', '.join(map(quoted, statement.partition_by))})"] if statement.partition_by else []
    words += [f"COMMENT {_text(statement.comment)}"] if statement.comment is not None else []
    if statement.query is None:
        with errors_in_words(source):
            state.spark.sql(" ".join(words))
    else:
        with rewritten(state, statement.query) as found, errors_in_words(source):
            state.spark.sql(found.text.behind(" ".join([*words, "AS "])).text)
    return Result(message=f"table {statement.table} created by Spark as {format_name}")


def _refuse_ours(statement: CreateTable, format_name: str) -> None:
    for what, is_there in (
        ("a primary key", bool(statement.primary_key)),
        ("computed columns", bool(statement.computed)),
        ("columns with METADATA", any(each.metadata is not None for each in statement.columns)),
        ("a watermark", bool(statement.watermarks)),
        ("LIKE", statement.like is not None),
        ("TEMPORARY", statement.temporary),
    ):
        if is_there:
            message = (
                f"table {statement.table}: with {format_name} it is a table of Spark's, which can't have {what}; leave "
                "that out, or leave the connector out to make a dynamic table"
            )
            raise InvalidInputError(message)


def _column(name: str, type_: str, comment: str | None, *, nullable: bool) -> str:
    parts = [quoted(name), type_, *([] if nullable else ["NOT NULL"])]
    return " ".join([*parts, *([] if comment is None else ["COMMENT", _text(comment)])])


def _spelled(options: Mapping[str, str]) -> str:
    return ", ".join(f"{_text(key)} = {_text(value)}" for key, value in options.items())


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def is_sparks(state: SessionState, table: NamedTable) -> bool:
    """Return whether the name refers to a table in Spark's catalog, and not to a temporary view."""
    return state.view(table.parts) is None and state.is_sparks(table.parts)


def insert_into_sparks(state: SessionState, statement: Insert, source: SourceText) -> Result:
    """Let Spark write one of its own tables."""
    table = statement.target.table
    if statement.target.hint or statement.partition is not None:
        message = f"{table} is a Spark table; hints and PARTITION are for dynamic tables"
        raise InvalidInputError(message)
    if state.settings.runtime_mode is RuntimeMode.STREAMING:
        message = f"{table} is a Spark table, which SQL writes in batches only; SET '{RUNTIME_MODE}' = 'batch'"
        raise InvalidInputError(message)
    columns = f" ({', '.join(map(quoted, statement.columns))})" if statement.columns else ""
    verb = "OVERWRITE" if statement.overwrite else "INTO"
    with rewritten(state, statement.query) as found, errors_in_words(source):
        state.spark.sql(found.text.behind(f"INSERT {verb} {_name(table)}{columns} ").text)
    return Result(message=f"{table}: written by Spark")


def drop_sparks(state: SessionState, table: NamedTable) -> Result:
    """Let Spark drop one of its own tables."""
    with errors_in_words():
        state.spark.sql(f"DROP TABLE {_name(table)}")
    return Result(message=f"table {table} dropped by Spark")


def _name(table: NamedTable) -> str:
    return ".".join(quoted(part) for part in table.parts)
