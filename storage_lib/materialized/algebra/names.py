"""Names of columns and common table expressions that occur once in a tree."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Names:
    """Source of new names. Not thread-safe."""

    start: int = 1
    _numbers: Iterator[int] = field(init=False)

    def __post_init__(self) -> None:
        """Begin to count."""
        object.__setattr__(self, "_numbers", itertools.count(self.start))

    def column(self) -> str:
        """Return a name for a column."""
        return f"c{next(self._numbers)}"

    def relation(self) -> str:
        """Return a name for a common table expression."""
        return f"q{next(self._numbers)}"
