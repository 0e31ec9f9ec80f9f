"""Names and values in the SQL of a source. Both standard: PostgreSQL and DuckDB read them alike."""

from __future__ import annotations

from storage_lib.errors import InvalidInputError


def quoted(name: str) -> str:
    """Return a name as a quoted identifier."""
    return f'"{_of_text(name).replace(chr(34), chr(34) * 2)}"'


def literal(value: str | int) -> str:
    """Return a value as a literal."""
    return str(value) if isinstance(value, int) else f"'{_of_text(value).replace(chr(39), chr(39) * 2)}'"


def bare_query(query: str) -> str:
    """Return a query that may stand in parentheses: without its final semicolon."""
    bare = query.strip().rstrip(";").strip()
    if not bare:
        message = "the query is empty; give a SELECT"
        raise InvalidInputError(message)
    return f"{bare}\n"  # it may end with a comment


def _of_text(text: str) -> str:
    if "\0" in text:
        message = f"{text!r} has a zero byte, which SQL can't name"
        raise InvalidInputError(message)
    return text
