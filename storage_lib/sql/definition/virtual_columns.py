"""Computed columns and watermarks: stored in a table's options, evaluated by Spark whenever the table is read.

column.<name>.expression    expression of a computed column
column.<name>.comment       its comment
watermark.<column>          maximum lateness of a row, as ``5 SECOND``
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from storage_lib.errors import InvalidInputError
from storage_lib.schema.filter.pure_functions import PURE_FUNCTIONS, SYNTAX
from storage_lib.schema.filter.spark_text import SparkText
from storage_lib.schema.options.event_time import DELAY_UNIT_MILLIS, WATERMARK_PREFIX, watermarks
from storage_lib.schema.options.metadata_options import column_of_key
from storage_lib.sql.statements.table_statements import ComputedColumn, Watermark
from storage_lib.sql.text.query_tables import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COLUMN = "column."
_EXPRESSION = ".expression"
_COMMENT = ".comment"
_UNSAFE = re.compile(r"\\['\"`]|--|/\*")
"""What ends a text or a comment in another place for another parser."""


def options_of_virtual_columns(computed: Iterable[ComputedColumn], watermarks: Iterable[Watermark]) -> dict[str, str]:
    """Return the options that store them. Raises ``InvalidInputError`` for a watermark strategy that is not a delay."""
    options: dict[str, str] = {}
    for each in computed:
        options[f"{_COLUMN}{each.name}{_EXPRESSION}"] = each.expression.text
        if each.comment is not None:
            options[f"{_COLUMN}{each.name}{_COMMENT}"] = each.comment
    for watermark in watermarks:
        options[f"{WATERMARK_PREFIX}{watermark.column}"] = delay_of(watermark)
    return options


def delay_of(watermark: Watermark) -> str:
    """Return the delay: ``5 SECOND`` for ``ts - INTERVAL '5' SECOND``, ``0 SECOND`` for ``ts``.

    Raises ``InvalidInputError`` for any other strategy.
    """
    text = watermark.strategy.text
    try:
        tree = sqlglot.parse_one(text, dialect=SparkText)
    except SqlglotError:
        tree = None
    column = tree.this if isinstance(tree, exp.Sub) else tree
    if isinstance(column, exp.Column) and column.name.lower() == watermark.column.lower():
        if not isinstance(tree, exp.Sub):
            return "0 SECOND"
        interval = tree.expression
        amount = interval.this.name if isinstance(interval, exp.Interval) and interval.this is not None else ""
        unit = str(interval.args.get("unit") or "").upper().rstrip("S") if isinstance(interval, exp.Interval) else ""
        if amount.isdigit() and unit in DELAY_UNIT_MILLIS:
            return f"{amount} {unit}"
    message = (
        f"WATERMARK FOR {watermark.column} AS {text}: a watermark follows its column at a distance; write "
        f"{watermark.column} - INTERVAL '5' SECOND (or another unit), or {watermark.column} alone"
    )
    raise InvalidInputError(message)


def computed_columns(options: Mapping[str, str]) -> dict[str, str]:
    """Return name -> expression of a table's computed columns, in the order of the options."""
    return {
        key[len(_COLUMN) : -len(_EXPRESSION)]: value
        for key, value in options.items()
        if key.startswith(_COLUMN) and key.endswith(_EXPRESSION)
    }


def refuse_reaching_out(table: str, options: Mapping[str, str]) -> None:
    """Raise ``InvalidInputError`` for a computed column that is unsafe, because every reader's Spark evaluates it.

    Refuses sub-queries, functions that are not listed (``pure_functions``), variables of the driver, and texts that
    can't be parsed or whose parts Spark may tell apart otherwise: comments, and escaped quotes.
    """
    for name, expression in computed_columns(options).items():
        problem = _reaching_out(expression)
        if problem is not None:
            message = (
                f"table {table}: computed column {name!r} AS ({expression}) is more than an expression over the "
                f"table's columns: {problem} is not allowed"
            )
            raise InvalidInputError(message)


def _reaching_out(expression: str) -> str | None:
    """Return what an expression holds that may reach out of a table; None if nothing does."""
    try:
        tree = sqlglot.parse_one(f"SELECT ({expression})", dialect=SparkText)
        tokens = sqlglot.tokenize(expression, read=SparkText)
    except SqlglotError:
        return "invalid syntax"
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1 or len(list(tree.find_all(exp.Select))) != 1:
        return "a query"
    if tree.find(exp.Table):
        return "a query"
    if "${" in expression or _UNSAFE.search(expression):
        return "a variable, a comment or an escaped quote"
    words = ["", "", *(token.text.lower() for token in tokens)]
    for qualifier, word, sign in zip(words, words[1:], words[2:], strict=False):
        if sign == "(" and (qualifier == "." or not _may_precede(word)):
            return f"function {word}"
    return None


def _may_precede(text: str) -> bool:
    """Return whether a parenthesis after a word or sign begins no call, or that of a function that is listed."""
    word = text.rpartition(" ")[2]  # of ORDER BY, which is one token
    return word in PURE_FUNCTIONS or word in SYNTAX or (word != ")" and not any(map(_is_of_name, word)))


def _is_of_name(letter: str) -> bool:
    return letter.isalnum() or letter in "_$"


def computed_comment(options: Mapping[str, str], name: str) -> str | None:
    """Return the comment of a computed column; None without one."""
    return options.get(f"{_COLUMN}{name}{_COMMENT}")


def is_virtual(key: str) -> bool:
    """Return whether an option belongs to a computed column, a column with metadata or a watermark."""
    if column_of_key(key) is not None:
        return True
    return key.startswith(WATERMARK_PREFIX) or (key.startswith(_COLUMN) and key.endswith((_EXPRESSION, _COMMENT)))


def with_virtual_columns(df: DataFrame, options: Mapping[str, str], computed: Mapping[str, str]) -> DataFrame:
    """Return the data frame with these computed columns appended and, if it is a stream, the table's watermark."""
    if computed:
        df = df.selectExpr("*", *[f"({expression}) AS {quoted(name)}" for name, expression in computed.items()])
    late = watermarks(options)
    if late and df.isStreaming:
        from pyspark.sql.types import TimestampNTZType

        for column, delay in late.items():
            if df.schema[column].dataType == TimestampNTZType():
                # Spark supports watermarks only on TIMESTAMP_LTZ; a write to a TIMESTAMP column restores the value.
                df = df.withColumn(column, df[quoted(column)].cast("timestamp"))
            df = df.withWatermark(column, delay.lower())
    return df
