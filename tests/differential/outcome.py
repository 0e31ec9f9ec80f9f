"""Outcome of one case, and a tally of many."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

Verdict = Literal["right", "refused", "stopped", "wrong"]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Result of one case. ``refused``: the INSERT did not begin. ``stopped``: it ended with a permitted error.

    ``wrong``: another error, or rows other than the query's answer; ``said`` describes it.
    """

    verdict: Verdict
    said: str = ""
    drains: int = 0


@dataclass
class Tally:
    """Number of cases per verdict; refusals are counted by reason, so that none goes unnoticed."""

    verdicts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    drains: int = 0

    def add(self, outcome: Outcome) -> None:
        self.verdicts[outcome.verdict] += 1
        self.drains += outcome.drains
        if outcome.verdict in ("refused", "stopped"):
            self.reasons[f"{outcome.verdict}: {_reason(outcome.said)}"] += 1

    @property
    def count(self) -> int:
        return self.verdicts.total()

    @property
    def share_right(self) -> float:
        return self.verdicts["right"] / max(1, self.count)

    def __str__(self) -> str:
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in self.verdicts.most_common())
        reasons = "".join(f"\n  {count:6} {reason}" for reason, count in self.reasons.most_common())
        return f"{self.count} cases: {verdicts}; {self.drains} comparisons{reasons}"


def _reason(said: str) -> str:
    """Return a message without the parts that are specific to the case."""
    plain = re.sub(r"\bd\d+\.(\w+)", r"\1", said.replace("\n", " "))
    return re.sub(r"\{[^}]*\}|'[^']*'|\"[^\"]*\"|\([^)]*\)|WHERE.*?;|\d+", "…", plain)[:120]
