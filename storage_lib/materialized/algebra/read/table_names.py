"""The tables that a query names, and its text with other relations in their place."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError

from storage_lib.errors import InvalidInputError
from storage_lib.schema.filter.spark_text import SparkText

WINDOW_CALL = "wind0w"

__all__ = ["WINDOW_CALL", "NamedTables", "parsed", "read_table_names", "tables_of"]


@dataclass(frozen=True, slots=True)
class NamedTables:
    """A query's text and the places of tables in it: (start, end, qualified name, whether an alias follows)."""

    query: str
    places: tuple[tuple[int, int, str, bool], ...]

    def text(self, relation: Callable[[str], str]) -> str:
        """Return the query with the relation of each table in place of its name."""
        parts, end = [], 0
        for start, stop, name, has_alias in self.places:
            alias = "" if has_alias else f" AS `{name.rpartition('.')[2].replace('`', '``')}`"
            parts += [self.query[end:start], relation(name), alias]
            end = stop
        return "".join([*parts, self.query[end:]])


def tables_of(text: str, *, database: str) -> tuple[str, ...]:
    """Return the qualified names of the tables that a query reads, each once, in order of appearance.

    Names of three parts begin with a catalog.

    Raises ``InvalidInputError`` if it cannot be parsed or is not a query.
    """
    return tuple(dict.fromkeys(name for _, _, name, _ in read_table_names(text, database=database).places))


def parsed(text: str) -> exp.Query:
    """Return the tree of a query. Raises ``InvalidInputError``, with line and column, if it is not one."""
    try:
        tree = sqlglot.parse_one(_with_windows(text), dialect=SparkText)
    except TokenError as error:
        raise InvalidInputError(f"the query cannot be parsed: {str(error)[:200]}") from None
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        what = str(first.get("description") or error).split(" but got ", maxsplit=1)[0].rstrip(".")
        what = "incomplete" if what.startswith("Required keyword") else what
        highlight = str(first.get("highlight") or "")
        start = int(first.get("col") or 1) - max(0, len(highlight) - 1)
        raise InvalidInputError(f"line {first.get('line', 1)}, column {start}: {what}, at {highlight!r}") from None
    except (SqlglotError, RecursionError) as error:
        raise InvalidInputError(f"the query cannot be parsed: {str(error)[:200]}") from None
    if not isinstance(tree, exp.Query):
        raise InvalidInputError("line 1, column 1: expected a query: SELECT, WITH or a set operation")
    return tree


def _with_windows(text: str) -> str:
    """Return the text with calls of WINDOW under a name of the same length, which the renderer puts back.

    The parser takes the word for the clause of that name.
    """
    places = []
    tokens = sqlglot.tokenize(text, read=SparkText)
    for token, following in itertools.pairwise(tokens):
        if token.text.lower() == "window" and following.text == "(" and text[token.start] != "`":
            places.append(token.start)
    for start in places:
        text = f"{text[:start]}{WINDOW_CALL}{text[start + len(WINDOW_CALL) :]}"
    return text


def read_table_names(text: str, *, database: str) -> NamedTables:
    """Return the places of the tables that a query names; names of common table expressions hide tables."""
    places = []
    for table in parsed(text).find_all(exp.Table):
        parts = [part for part in table.parts if isinstance(part, exp.Identifier)]
        if not parts or len(parts) != len(table.parts) or table.find_ancestor(exp.Hint):
            continue
        if len(parts) == 1 and _is_hidden(table, parts[0].name):
            continue
        if table.args.get("version") or table.args.get("when"):
            what = "a query that is kept up to date reads the newest rows; remove AS OF"
            raise InvalidInputError(f"{_place(parts[0])}{parts[-1].name}: {what}")
        if len(parts) > 3:
            name = ".".join(each.name for each in parts)
            what = "name tables as database.table, or catalog.database.table"
            raise InvalidInputError(f"{_place(parts[0])}{name}: {what}")
        name = ".".join(each.name for each in parts) if len(parts) > 1 else f"{database}.{parts[0].name}"
        places.append((int(parts[0].meta["start"]), int(parts[-1].meta["end"]) + 1, name, bool(table.alias)))
    return NamedTables(text, tuple(sorted(places)))


def _place(part: exp.Expr) -> str:
    return f"line {part.meta['line']}, column {part.meta['col'] - (part.meta['end'] - part.meta['start'])}: "


def _is_hidden(table: exp.Table, name: str) -> bool:
    """Return whether the name is that of a common table expression in sight."""
    node: exp.Expr = table
    while node.parent is not None:
        above = node.parent
        clause = above.args.get("with_")
        if clause is not None:
            names = [each.alias.lower() for each in clause.expressions]
            if node is clause:
                inside = table.find_ancestor(exp.CTE)
                while inside is not None and inside.parent is not clause:
                    inside = inside.find_ancestor(exp.CTE)
                end = next((n for n, each in enumerate(clause.expressions) if each is inside), len(names))
                names = names if clause.args.get("recursive") else names[:end]
            if name.lower() in names:
                return True
        node = above
    return False
