"""Which features met in games: pairs of options in one table, of an option and a move, and of a move after another.

A pair that no game has met has a reason: the product refuses it, or the two cannot be in one table. Others are listed
as missing, so that no pair is left out unnoticed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, product
from random import Random

from tests.game.drawn_table import DrawnTable, draw

Pair = tuple[str, str]
_DRAWS = 4000
"""So many drawn tables have all values of all options."""


@dataclass
class PairsMet:
    """Counts of pairs, and the refusals of pairs with the newest reason. Counts of several games can be added.

    ``turns``: moves that were made or refused.
    """

    met: Counter[Pair] = field(default_factory=Counter)
    refused: dict[Pair, str] = field(default_factory=dict)
    moves: Counter[str] = field(default_factory=Counter)
    turns: int = 0

    def has_table(self, drawn: DrawnTable) -> None:
        self.met.update(combinations(sorted(drawn.traits), 2))

    def table_refused(self, drawn: DrawnTable, reason: str) -> None:
        for pair in combinations(sorted(drawn.traits), 2):
            self.refused[pair] = reason

    def move_made(self, drawn: DrawnTable, move: str, previous: str | None) -> None:
        self.moves[move] += 1
        self.met.update((trait, move) for trait in drawn.traits)
        if previous is not None:
            self.met[f"after {previous}", move] += 1

    def move_refused(self, drawn: DrawnTable, move: str, reason: str) -> None:
        for trait in drawn.traits:
            self.refused[trait, move] = reason

    def add(self, other: PairsMet) -> None:
        self.met.update(other.met)
        self.moves.update(other.moves)
        self.turns += other.turns
        self.refused |= other.refused

    def missing(self) -> Iterator[tuple[Pair, str | None]]:
        """Yield the pairs that were not met, with the reason; None: they only have not met yet."""
        tables = _drawn_tables()
        traits = sorted(set().union(*(each.traits for each in tables)))
        drawn_pairs = set().union(*(combinations(sorted(each.traits), 2) for each in tables))
        for pair in combinations(traits, 2):
            if pair not in self.met:
                never = None if pair in drawn_pairs else "they are not options of one table"
                yield pair, self.refused.get(pair, never)
        for pair in product(traits, sorted(self.moves)):
            if pair not in self.met:
                yield pair, self.refused.get(pair)
        for previous, move in product(sorted(self.moves), repeat=2):
            if (f"after {previous}", move) not in self.met:
                yield (f"after {previous}", move), None

    def report(self) -> Iterator[str]:
        """Yield the lines of a report."""
        missing = list(self.missing())
        yield f"{self.turns} moves; made, and answers of readers: {dict(self.moves.most_common())}"
        yield f"{len(self.met)} pairs met, {len(missing)} did not"
        yield from (f"  {count} times {pair}" for pair, count in self.met.most_common()[:-11:-1])
        reasons = Counter(reason for _, reason in missing if reason is not None)
        yield from (f"  {count} pairs: {reason}" for reason, count in reasons.most_common())
        yield from (f"  not yet: {pair}" for pair, reason in missing if reason is None)

    def to_json(self) -> str:
        return json.dumps(
            {
                "met": [[*pair, count] for pair, count in self.met.items()],
                "refused": [[*pair, reason] for pair, reason in self.refused.items()],
                "moves": self.moves,
                "turns": self.turns,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> PairsMet:
        stored = json.loads(text)
        return cls(
            Counter({(one, other): count for one, other, count in stored["met"]}),
            {(one, other): reason for one, other, reason in stored["refused"]},
            Counter(stored["moves"]),
            stored["turns"],
        )


def _drawn_tables() -> list[DrawnTable]:
    rng = Random(0)  # noqa: S311  reproducible
    return [draw(rng) for _ in range(_DRAWS)]


def united(parts: Iterable[PairsMet]) -> PairsMet:
    """Return the sum of what several games met."""
    result = PairsMet()
    for part in parts:
        result.add(part)
    return result
