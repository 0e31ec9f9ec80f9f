"""Random rows of three small tables whose values often meet."""

from __future__ import annotations

from random import Random
from typing import Any

Row = tuple[Any, ...]


class SmallRows:
    """Makes rows with seeded chance. Rows of ``events`` have no key and may occur several times."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._made = 0

    def first(self, table: str) -> dict[Row, Row]:
        """Return the rows that a table begins with, by their keys."""
        return dict(self.keyed(table) for _ in range(20))

    def keyed(self, table: str) -> tuple[Row, Row]:
        """Return a new row of a table, after its key."""
        rng = self._rng
        if table == "orders":
            number, amount = rng.randrange(30), rng.choice([None, *range(0, 90, 7)])
            return (number,), (number, rng.choice([None, *range(6)]), amount, self._text())
        if table == "category":
            number = rng.randrange(6)
            return (number,), (number, self._text(), rng.choice([None, 1, 5, 30]))
        self._made += 1
        return (self._made,), (rng.choice([None, *range(8)]), rng.choice([None, 1, 2, 30, 40]), self._text())

    def _text(self) -> str | None:
        return self._rng.choice([None, "c0", "c1", "c2"])
