"""A script as statements: cut at semicolons that stand in no text, name or comment."""

from __future__ import annotations

from lark import Token

from storage_lib.sql.text.grammar import START_SCRIPT, parse_tree
from storage_lib.sql.text.source_text import SourceText


def statements_of(text: str) -> list[SourceText]:
    """The statements of a script, each with the line it begins on; what holds nothing but comments is left out.

    Raises ``SqlSyntaxError`` for a text, name or comment that does not end.
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
    """Whether the last statement of a text ends with a semicolon, or there is none; for a shell that asks for more."""
    pieces = [piece for piece in parse_tree(SourceText(text=text), START_SCRIPT).children if isinstance(piece, Token)]
    return not pieces or pieces[-1].type == "SEMICOLON"


def _statement(text: str, begin: int, end: int) -> SourceText:
    """Its first line is whole, so that a column is one of the script."""
    line_start = text.rfind("\n", 0, begin) + 1
    indent = text[line_start:begin]
    blank = "".join(letter if letter == "\t" else " " for letter in indent)
    return SourceText(text=blank + text[begin:end], first_line=text.count("\n", 0, begin) + 1)
