"""Clauses that this library adds after a table's name in a query: hints and AS OF, found among the query's tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lark import Token

from storage_lib.sql.text.grammar import START_HINT, START_PIECES, parse_tree
from storage_lib.sql.text.source_text import SourceText
from storage_lib.sql.text.tree_values import properties_of

_HINT = "/*+"
_TIME_WORDS = ("TIMESTAMP", "SYSTEM_TIME")
_VERSION_WORDS = ("VERSION", "SYSTEM_VERSION")


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOf:
    """``VERSION AS OF 3`` (``is_time`` False) or ``TIMESTAMP AS OF '...'``; ``expression`` as written."""

    is_time: bool
    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """A hint or an AS OF clause, with its offsets in the statement."""

    start: int
    end: int
    hint: Mapping[str, str] | None = None
    as_of: AsOf | None = None


def pieces_of(source: SourceText, start: int, end: int) -> list[Token]:
    """Return the tokens of a statement between two offsets, without comments."""
    tree = parse_tree(source, START_PIECES, text=blank_around(source, start, end))
    return [piece for piece in tree.children if isinstance(piece, Token)]


def blank_around(source: SourceText, start: int, end: int) -> str:
    """Return the part of a statement at its original offset: the text before it is blank except for line breaks."""
    before = "".join("\n" if letter == "\n" else " " for letter in source.text[:start])
    return before + source.text[start:end]


def clauses_of(source: SourceText, pieces: Sequence[Token]) -> list[Clause]:
    """Return the ``OPTIONS`` hints and AS OF clauses among the tokens, in order."""
    return sorted([*_hints(source, pieces), *_as_ofs(source, pieces)], key=lambda clause: clause.start)


def read_hint(source: SourceText, start: int, end: int) -> dict[str, str]:
    """Return the options of the hint between two offsets; ``SqlSyntaxError`` for any hint but ``OPTIONS``."""
    inside = blank_around(source, start + len(_HINT), end - len("*/"))
    return properties_of(source, parse_tree(source, START_HINT, text=inside))


def masked(source: SourceText, clauses: Sequence[Clause], pieces: Sequence[Token], end: int) -> str:
    """Return the statement up to ``end`` with clauses blank and ``$`` in names replaced, for sqlglot to parse."""
    letters = list(source.text[:end])
    for piece in pieces:
        if "$" in piece and piece[0] not in "'\"`":
            for index in range(_start(piece), _end(piece)):
                letters[index] = "_" if letters[index] == "$" else letters[index]
    for clause in clauses:
        for index in range(clause.start, clause.end):
            letters[index] = "\n" if letters[index] == "\n" else " "
    return "".join(letters)


def _hints(source: SourceText, pieces: Sequence[Token]) -> Iterator[Clause]:
    for piece in pieces:
        if piece.startswith(_HINT) and piece[len(_HINT) :].lstrip().upper().startswith("OPTIONS"):
            start, end = _start(piece), _end(piece)
            yield Clause(start=start, end=end, hint=read_hint(source, start, end))


def _as_ofs(source: SourceText, pieces: Sequence[Token]) -> Iterator[Clause]:
    words = [str(piece).upper() for piece in pieces]
    for index, word in enumerate(words):
        is_time = word in _TIME_WORDS
        if (is_time or word in _VERSION_WORDS) and words[index + 1 : index + 3] == ["AS", "OF"]:
            last = _end_of_value(pieces, index + 3)
            if last is None:
                continue
            last = _end_of_intervals(pieces, last)
            first = index - 1 if index and words[index - 1] == "FOR" else index
            begin, end = _start(pieces[index + 3]), _end(pieces[last])
            as_of = AsOf(is_time=is_time, expression=source.text[begin:end])
            yield Clause(start=_start(pieces[first]), end=end, as_of=as_of)


def _end_of_value(pieces: Sequence[Token], index: int) -> int | None:
    """Return the index of the last token of a value: a string, a number, ``TIMESTAMP '...'`` or a function call.

    None if none of these begins at ``index``.
    """
    if index >= len(pieces):
        return None
    piece = pieces[index]
    if piece[0] in "'\"" or piece[0].isdigit():
        return index
    following = pieces[index + 1] if index + 1 < len(pieces) else ""
    if following[:1] in ("'", '"'):
        return index + 1
    if following != "(":
        return None
    depth = 0
    for at in range(index + 1, len(pieces)):
        depth += {"(": 1, ")": -1}.get(pieces[at], 0)
        if depth == 0:
            return at
    return None


def _end_of_intervals(pieces: Sequence[Token], last: int) -> int:
    """Return the index of the last token of a value that may be followed by intervals such as ``- INTERVAL 1 HOUR``."""
    words = [str(piece).upper() for piece in pieces[last + 1 : last + 5]]
    is_interval = len(words) == 4 and words[0] in ("+", "-") and words[1] == "INTERVAL" and words[3].isalpha()
    return _end_of_intervals(pieces, last + 4) if is_interval else last


def _start(piece: Token) -> int:
    return piece.start_pos or 0


def _end(piece: Token) -> int:
    return piece.end_pos or 0
