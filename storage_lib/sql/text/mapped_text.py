"""Generated SQL text that contains parts of a statement and maps its positions back to that statement."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from storage_lib.errors import SqlSyntaxError
from storage_lib.sql.text.source_text import SourceText


class MappedText:
    """Text built from pieces. The origin of a piece is its offset in the statement; None if it was generated."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._starts: list[int] = []
        self._origins: list[int | None] = []
        self._length = 0

    def add(self, text: str, origin: int | None = None) -> MappedText:
        """Append a piece; return this object."""
        self._starts.append(self._length)
        self._origins.append(origin)
        self._parts.append(text)
        self._length += len(text)
        return self

    def behind(self, prefix: str) -> MappedText:
        """Return a copy with generated text before it."""
        whole = MappedText().add(prefix)
        for part, origin in zip(self._parts, self._origins, strict=True):
            whole.add(part, origin)
        return whole

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self._parts)

    def origin_of(self, offset: int) -> int | None:
        """Return the offset in the statement of a character; for generated text, the end of the last piece before it.

        None if no piece of the statement precedes it.
        """
        index = bisect_right(self._starts, offset) - 1
        if index < 0:
            return None
        own = self._origins[index]
        if own is not None:
            return own + min(offset - self._starts[index], len(self._parts[index]))
        for before in range(index - 1, -1, -1):
            origin = self._origins[before]
            if origin is not None:
                return origin + len(self._parts[before])
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedText(SourceText):
    """Source text of a ``MappedText``: errors are reported at positions of the original statement."""

    statement: SourceText
    pieces: MappedText = field(compare=False)

    @classmethod
    def of(cls, pieces: MappedText, statement: SourceText) -> ComposedText:
        """Return the source text of ``pieces`` that were built for ``statement``."""
        return cls(text=pieces.text, statement=statement, pieces=pieces)

    def at(self, offset: int) -> int:
        """Return the offset in the statement of a character of this text; 0 if it has none."""
        return self.pieces.origin_of(offset) or 0

    def place(self, offset: int) -> tuple[int, int]:
        """Return line and column in the statement."""
        return self.statement.place(self.at(offset))

    def pointed(self, offset: int) -> str:
        """Return the statement's line with a caret under the character."""
        return self.statement.pointed(self.at(offset))

    def syntax_error(self, offset: int, problem: str) -> SqlSyntaxError:
        """Return the error, with its position in the statement."""
        return self.statement.syntax_error(self.at(offset), problem)
