"""Which fault of the soak strikes next, and when enough have: by chance for some time, or each one once.

A fault is a kind and the role of the process that it strikes, or ``""`` if it strikes more than one.
"""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Sequence
from typing import Protocol

KILL, FREEZE, KILL_EVERYBODY, KILL_THE_BROKER = "kill", "freeze", "kill everybody", "kill the broker"
OF_ONE = (KILL, FREEZE)
ODDS = {KILL: 20, FREEZE: 5, KILL_EVERYBODY: 1, KILL_THE_BROKER: 1}
Fault = tuple[str, str]


class Faults(Protocol):
    """Source of faults."""

    def draw(self, frozen: Collection[str], commits: int) -> Fault | None:
        """Return a fault that does not strike one of the ``frozen`` processes, or None if there is none now.

        ``commits`` is the number of commits until now.
        """
        ...

    def have_all_struck(self) -> bool:
        """Whether the soak is over."""
        ...


class ChanceFaults:
    """Faults by their odds, for some seconds."""

    def __init__(self, dice: random.Random, roles: Sequence[str], *, seconds: float, spares_broker: bool) -> None:
        self._dice = dice
        self._roles = roles
        self._odds = {kind: odds for kind, odds in ODDS.items() if not (spares_broker and kind == KILL_THE_BROKER)}
        self._end = time.monotonic() + seconds

    def draw(self, frozen: Collection[str], commits: int) -> Fault | None:
        """See ``Faults.draw``."""
        (kind,) = self._dice.choices(list(self._odds), list(self._odds.values()))
        role = self._dice.choice(self._roles) if kind in OF_ONE else ""
        return None if role in frozen else (kind, role)

    def have_all_struck(self) -> bool:
        """See ``Faults.have_all_struck``."""
        return time.monotonic() >= self._end


class EachFaultOnce:
    """Every kind of fault at every role once, in random order, however long it takes.

    Between two of them there is a commit, so that a slow machine does not kill processes that have done nothing.
    """

    def __init__(self, dice: random.Random, roles: Sequence[str], *, spares_broker: bool) -> None:
        of_all = [KILL_EVERYBODY] if spares_broker else [KILL_EVERYBODY, KILL_THE_BROKER]
        self._left: list[Fault] = [
            *((kind, role) for kind in OF_ONE for role in roles),
            *((kind, "") for kind in of_all),
        ]
        dice.shuffle(self._left)
        self._commits = 0

    def draw(self, frozen: Collection[str], commits: int) -> Fault | None:
        """See ``Faults.draw``."""
        fault = next((each for each in self._left if each[1] not in frozen), None)
        if fault is None or commits == self._commits:
            return None
        self._left.remove(fault)
        self._commits = commits
        return fault

    def have_all_struck(self) -> bool:
        """See ``Faults.have_all_struck``."""
        return not self._left
