"""Positions in the text of a statement, and syntax errors that show them."""

from __future__ import annotations

from dataclasses import dataclass

from storage_lib.errors import SqlSyntaxError


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceText:
    """Text of one statement; ``first_line`` is its line number in the script, from 1."""

    text: str
    first_line: int = 1

    def place(self, offset: int) -> tuple[int, int]:
        """Return line and column of a character, both from 1."""
        before = self.text[: max(0, min(offset, len(self.text)))]
        return self.first_line + before.count("\n"), len(before) - (before.rfind("\n") + 1) + 1

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a character from its line and column; the reverse of ``place``."""
        start = 0
        for _ in range(line - self.first_line):
            start = self.text.index("\n", start) + 1
        return start + column - 1

    def pointed(self, offset: int) -> str:
        """Return the line of a character with a caret under it."""
        at = max(0, min(offset, len(self.text)))
        start = self.text.rfind("\n", 0, at) + 1
        end = self.text.find("\n", at)
        line = self.text[start : len(self.text) if end < 0 else end]
        # Keep tabs, so that the indent of the caret is as wide as the text before the character.
        indent = "".join("\t" if letter == "\t" else " " for letter in line[: at - start])
        return f"  {line}\n  {indent}^"

    def syntax_error(self, offset: int, problem: str) -> SqlSyntaxError:
        """Return the error with line, column and the marked line."""
        return SqlSyntaxError(self.marked(offset, problem))

    def marked(self, offset: int, problem: str) -> str:
        """Return the message of an error with line, column and the marked line."""
        line, column = self.place(offset)
        return f"line {line}, column {column}: {problem}\n{self.pointed(offset)}"
