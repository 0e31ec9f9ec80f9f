"""Places in the text of a statement, and how an error shows them."""

from __future__ import annotations

from dataclasses import dataclass

from storage_lib.errors import SqlSyntaxError


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceText:
    """The text of one statement; ``first_line`` is where it stands in its script, from 1."""

    text: str
    first_line: int = 1

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of a letter, both from 1."""
        before = self.text[: max(0, min(offset, len(self.text)))]
        return self.first_line + before.count("\n"), len(before) - (before.rfind("\n") + 1) + 1

    def pointed(self, offset: int) -> str:
        """The line of a letter with a caret under it."""
        at = max(0, min(offset, len(self.text)))
        start = self.text.rfind("\n", 0, at) + 1
        end = self.text.find("\n", at)
        line = self.text[start : len(self.text) if end < 0 else end]
        # The caret stands under the letter only if what is before it is as wide.
        indent = "".join("\t" if letter == "\t" else " " for letter in line[: at - start])
        return f"  {line}\n  {indent}^"

    def syntax_error(self, offset: int, problem: str) -> SqlSyntaxError:
        """The error at a position."""
        line, column = self.place(offset)
        return SqlSyntaxError(f"line {line}, column {column}: {problem}\n{self.pointed(offset)}")
