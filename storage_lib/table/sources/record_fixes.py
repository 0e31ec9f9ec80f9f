"""Fixes of rejected JSON records: expressions that replace values of the rows in them before they are decoded.

The rest of a record stays as it is, to the last digit of its numbers. An expression sees one row only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.table.sources.fix_text import problem_of_fix

if TYPE_CHECKING:
    from re import Match

_SIDES = ("before", "after")
_NUMBER = "\0number:"
_ENCODED_NUMBER = re.compile(r'"\\u0000number:([^"]*)"')
_EXAMPLE = "for example name=left(name, 10), price=coalesce(price, 0)"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFixes:
    """Expressions by column. Without any, records stay as they are."""

    expressions: Mapping[str, pl.Expr]

    @classmethod
    def parse(cls, fixes: Mapping[str, str]) -> RecordFixes:
        """Parse SQL expressions by column; ``InvalidInputError`` for one that Polars does not know."""
        found: dict[str, pl.Expr] = {}
        for column, text in fixes.items():
            problem = problem_of_fix(text)
            if problem is not None:
                message = f"fix {column}={text}: {problem}"
                raise InvalidInputError(message)
            try:
                expression = pl.sql_expr(text)
            except pl.exceptions.PolarsError as error:
                message = f"fix {column}={text}: {error}; use an expression of SQL, {_EXAMPLE}"
                raise InvalidInputError(message) from error
            found[column] = expression
        return cls(expressions=found)

    def applied(self, values: pa.Array) -> tuple[pa.Array, Mapping[int, str]]:
        """Return the fixed records, and the reasons why some could not be fixed, by their index."""
        if not self.expressions:
            return values, {}
        documents: list[Any] = []
        reasons: dict[int, str] = {}
        rows: list[tuple[int, dict[str, Any]]] = []
        for index, value in enumerate(values.to_pylist()):
            document = None
            try:
                document = None if value is None else json.loads(value, parse_float=_kept_number)
            except (ValueError, RecursionError) as error:
                reasons[index] = f"it is not JSON, which a fix needs: {error}"
            documents.append(document)
            rows += [(index, row) for row in _rows_of(document)]
        for index, row in rows:
            # One by one: values of a column may have different types, and no row may depend on others.
            values_of_row: dict[str, Any] = {}
            for column, expression in self.expressions.items():
                try:
                    values_of_row[column] = _fixed(row, column, expression)
                except _UnfixableError as error:
                    reasons.setdefault(index, str(error))
            row.update(values_of_row)
        fixed = [
            given if document is None else _encoded(document)
            for given, document in zip(values.to_pylist(), documents, strict=True)
        ]
        return pa.array(fixed, pa.binary()), reasons


def _kept_number(text: str) -> str:
    return _NUMBER + text


def _encoded(document: Any) -> bytes:
    return _ENCODED_NUMBER.sub(_number_text, json.dumps(document)).encode()


def _number_text(found: Match[str]) -> str:
    return found[1]


def _rows_of(document: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a record: those of its envelope, or the record itself if it has none."""
    if not isinstance(document, dict):
        return
    payload = document.get("payload") if isinstance(document.get("schema"), dict) else document
    if not isinstance(payload, dict):
        return
    sides = [payload[side] for side in _SIDES if isinstance(payload.get(side), dict)]
    yield from sides or [payload]


class _UnfixableError(Exception):
    """A fix that can't be computed for a row, with the reason."""


def _fixed(row: Mapping[str, Any], column: str, expression: pl.Expr) -> bool | float | str | None:
    """Return the value of an expression over the values of a row as it was written."""
    names = expression.meta.root_names()
    lacking = [name for name in names if name not in row]
    if lacking:
        message = f"the fix of {column!r} names {lacking[0]!r}, which its row lacks"
        raise _UnfixableError(message)
    try:
        frame = pl.DataFrame({name: [_plain(row[name])] for name in names} or {"": [0]})
        fixed = frame.select(expression.alias("fixed"))["fixed"].to_list()
    # Python's errors: a number or a text that Polars can't represent.
    except (pl.exceptions.PolarsError, ValueError, OverflowError, TypeError) as error:
        message = f"the fix of {column!r} can't be computed: {error}"
        raise _UnfixableError(message) from error
    value = fixed[0] if len(fixed) == 1 else None
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_NUMBER):
        return float(value.removeprefix(_NUMBER))
    return json.dumps(value) if isinstance(value, dict | list) else value
