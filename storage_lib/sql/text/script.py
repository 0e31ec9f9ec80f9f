"""Split a script into statements at semicolons outside of strings, quoted names and comments."""

from __future__ import annotations

from lark import Token

from storage_lib.sql.text.grammar import START_SCRIPT, parse_tree
from storage_lib.sql.text.source_text import SourceText


def statements_of(text: str) -> list[SourceText]:
    """Return the statements of a script, each with its first line number; parts with only comments are omitted.

    Raises ``SqlSyntaxError`` for an unterminated string, quoted name or comment.
    """
    found: list[SourceText] = []
    begin: int | None = None
    end = 0
    for piece in parse_tree(SourceText(text=text), START_SCRIPT).children:
        if not isinstance(piece, Token):
            continue
        if piece.type == "SEMICOLON":
            if begin is not None:
                found.append(_statement(text, begin, end))
            begin = None
            continue
        begin = piece.start_pos if begin is None else begin
        end = piece.end_pos or 0
    if begin is not None:
        found.append(_statement(text, begin, end))
    return found


def is_complete(text: str) -> bool:
    """Return whether the last statement ends with a semicolon or there is none, so that a shell need not read more."""
    pieces = [piece for piece in parse_tree(SourceText(text=text), START_SCRIPT).children if isinstance(piece, Token)]
    return not pieces or pieces[-1].type == "SEMICOLON"


def _statement(text: str, begin: int, end: int) -> SourceText:
    """Return one statement. Its first line is padded with blanks, so that columns are those of the script."""
    line_start = text.rfind("\n", 0, begin) + 1
    indent = text[line_start:begin]
    blank = "".join(letter if letter == "\t" else " " for letter in indent)
    return SourceText(text=blank + text[begin:end], first_line=text.count("\n", 0, begin) + 1)
