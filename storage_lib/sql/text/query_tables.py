"""Find the tables that a Spark query names, with their offsets, so that they can be replaced in its text.

Names of common table expressions hide tables of the same name. All offsets are those of the statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from storage_lib.schema.filter.spark_text import SparkText
from storage_lib.sql.text.query_clauses import AsOf, Clause, clauses_of, masked, pieces_of
from storage_lib.sql.text.query_shape import QueryShape, has_star, shape_of
from storage_lib.sql.text.source_text import SourceText


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReference:
    """A table in a query. The text between ``start`` and ``end``, which is replaced, is its name, hint and AS OF.

    ``alias`` is None if the query gives it none; ``is_sampled``: TABLESAMPLE follows.
    """

    parts: tuple[str, ...]
    start: int
    end: int
    hint: Mapping[str, str] = field(default_factory=dict)
    as_of: AsOf | None = None
    alias: str | None = None
    is_sampled: bool = False

    def __str__(self) -> str:
        """Return the name with dots, without quotes."""
        return ".".join(self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Text of a query as written; ``start`` is its offset in the statement.

    ``words`` are all its tokens, in lower case; ``has_star``: it reads columns that it does not name. ``qualifiers``
    are the ranges of ``database.`` before columns of tables without an alias.
    """

    text: str
    start: int = 0
    tables: tuple[TableReference, ...] = ()
    words: frozenset[str] = frozenset()
    has_star: bool = True
    qualifiers: tuple[tuple[int, int], ...] = ()
    shape: QueryShape = field(default_factory=QueryShape)


def read_query(source: SourceText, start: int, end: int) -> Query:
    """Parse the query between two offsets of a statement. Raises ``SqlSyntaxError`` if it is not a valid query."""
    pieces = pieces_of(source, start, end)
    clauses = clauses_of(source, pieces)
    text = _from(masked(source, clauses, pieces, end), start)
    tree = _parsed(source, text)
    tables = sorted(_references(source, tree, text, clauses), key=lambda each: each.start)
    for clause in clauses:
        if not any(each.start < clause.start < each.end for each in tables):
            what = "AS OF" if clause.hint is None else "a hint /*+ OPTIONS(...) */"
            raise source.syntax_error(clause.start, f"{what} has to follow the name of a table")
    return Query(
        text=source.text[start:end],
        start=start,
        tables=tuple(tables),
        words=frozenset(_unquoted(str(piece)).lower() for piece in pieces),
        has_star=has_star(tree),
        qualifiers=tuple(_qualifiers(tree, tables)),
        shape=shape_of(tree, text, [each.start for each in tables]),
    )


def quoted(name: str) -> str:
    """Return a name in back quotes, with any back quotes in it doubled."""
    return f"`{name.replace('`', '``')}`"


def _from(text: str, start: int) -> str:
    return "".join("\n" if letter == "\n" else " " for letter in text[:start]) + text[start:]


def _parsed(source: SourceText, text: str) -> exp.Expr:
    try:
        tree = sqlglot.parse_one(text, dialect=SparkText)
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        offset = _offset(text, int(first.get("line") or 1), int(first.get("col") or 1))
        found = str(first.get("highlight") or "")
        raise source.syntax_error(
            offset - max(0, len(found) - 1), _in_words(str(first.get("description") or error), found)
        ) from None
    except (SqlglotError, RecursionError) as error:
        begin = len(text) - len(text.lstrip())
        raise source.syntax_error(begin, f"the query can't be parsed: {str(error)[:200]}") from None
    if not isinstance(tree, exp.Query | exp.Values):
        begin = len(text) - len(text.lstrip())
        raise source.syntax_error(begin, "expected a query: SELECT, WITH, VALUES or FROM")
    return tree


def _in_words(description: str, found: str) -> str:
    """Return sqlglot's error without the names of its classes."""
    if description.startswith("Required keyword"):
        return f"in the query: {found!r} is incomplete"
    return f"in the query: {description.split(' but got ', maxsplit=1)[0].rstrip('.')}, at {found!r}"


def _offset(text: str, line: int, column: int) -> int:
    """Return the offset of sqlglot's line and column, which count from 1 and point to a token's last character."""
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
    return start + column - 1


def _references(source: SourceText, tree: exp.Expr, text: str, clauses: Sequence[Clause]) -> Iterator[TableReference]:
    for table in tree.find_all(exp.Table):
        names = [part for part in table.parts if isinstance(part, exp.Identifier)]
        if not names or len(names) != len(table.parts) or table.find_ancestor(exp.Hint):
            continue
        if len(names) == 1 and _is_hidden(table, names[0].name):
            continue
        spans = [(int(part.meta["start"]), int(part.meta["end"]) + 1) for part in names]
        start, end = spans[0][0], spans[-1][1]
        hint: Mapping[str, str] = {}
        as_of = None
        for clause in clauses:
            if clause.start >= end and not text[end : clause.start].strip():
                end = clause.end
                hint, as_of = (clause.hint, as_of) if clause.hint is not None else (hint, clause.as_of)
        yield TableReference(
            parts=tuple(_unquoted(source.text[first:last]) for first, last in spans),
            start=start,
            end=end,
            hint=hint,
            as_of=as_of,
            alias=table.alias or None,
            is_sampled=table.args.get("sample") is not None,
        )


def _is_hidden(table: exp.Table, name: str) -> bool:
    """Return whether a common table expression of this name is in scope at the table."""
    below: exp.Expr = table
    above = table.parent
    while above is not None:
        if isinstance(above, exp.With):
            ctes = [each for each in above.expressions if isinstance(each, exp.CTE)]
            own = next((index for index, each in enumerate(ctes) if each is below), len(ctes))
            seen = ctes[: own + 1] if above.args.get("recursive") else ctes[:own]
            if any(_same(each.alias, name) for each in seen):
                return True
        else:
            with_ = above.args.get("with_")
            if with_ is not None and below is not with_ and any(_same(each.alias, name) for each in with_.expressions):
                return True
        below, above = above, above.parent
    return False


def _same(left: str, right: str) -> bool:
    return left.lower() == right.lower()


def _qualifiers(tree: exp.Expr, tables: Sequence[TableReference]) -> Iterator[tuple[int, int]]:
    named = {tuple(part.lower() for part in each.parts[-2:]) for each in tables if each.alias is None}
    for column in tree.find_all(exp.Column):
        database, table = column.args.get("db"), column.args.get("table")
        if database is None or table is None or (database.name.lower(), table.name.lower()) not in named:
            continue
        first = column.args.get("catalog") or database
        if "start" in first.meta and "start" in table.meta:
            yield int(first.meta["start"]), int(table.meta["start"])


def _unquoted(text: str) -> str:
    return text[1:-1].replace("``", "`") if text.startswith("`") else text
