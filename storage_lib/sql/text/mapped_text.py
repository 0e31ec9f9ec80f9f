"""Text that is put together from pieces of a statement and words of ours, and remembers which came from where."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from storage_lib.errors import SqlSyntaxError
from storage_lib.sql.text.source_text import SourceText


class MappedText:
    """A text under construction. ``origin`` is where a piece stands in the statement; None: nowhere."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._starts: list[int] = []
        self._origins: list[int | None] = []
        self._length = 0

    def add(self, text: str, origin: int | None = None) -> MappedText:
        """With a piece at its end."""
        self._starts.append(self._length)
        self._origins.append(origin)
        self._parts.append(text)
        self._length += len(text)
        return self

    def behind(self, prefix: str) -> MappedText:
        """The same with words of ours before it."""
        whole = MappedText().add(prefix)
        for part, origin in zip(self._parts, self._origins, strict=True):
            whole.add(part, origin)
        return whole

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self._parts)

    def origin_of(self, offset: int) -> int | None:
        """Where a letter stands in the statement; of a letter of ours, where the piece before it ends."""
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
    """A text of ours with pieces of a statement in it: its positions are mapped to those of the statement."""

    statement: SourceText
    pieces: MappedText = field(compare=False)

    @classmethod
    def of(cls, pieces: MappedText, statement: SourceText) -> ComposedText:
        """The text that was put together for this statement."""
        return cls(text=pieces.text, statement=statement, pieces=pieces)

    def at(self, offset: int) -> int:
        """The place in the statement of what stands here."""
        return self.pieces.origin_of(offset) or 0

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column in the statement."""
        return self.statement.place(self.at(offset))

    def pointed(self, offset: int) -> str:
        """The statement's line, with a caret."""
        return self.statement.pointed(self.at(offset))

    def syntax_error(self, offset: int, problem: str) -> SqlSyntaxError:
        """The error, with its position in the statement."""
        return self.statement.syntax_error(self.at(offset), problem)
