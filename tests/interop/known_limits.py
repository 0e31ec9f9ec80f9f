"""What other engines are known not to do, and why; the first that fits counts.

A limit that is gone fails the suite as much as a new one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tests.interop.one_life import DIFFERS, LACKS, REFUSES, Outcome
from tests.interop.table_cases import TableCase

NOT_COMPACTED = "sees what has been compacted: what was written since it leaves out"


@dataclass(frozen=True, kw_only=True)
class Limit:
    """``engine``, ``case``, ``does`` and ``verb`` are patterns; ``said`` is part of what the engine says."""

    engine: str = "*"
    case: str = "*"
    does: str = "*"
    verb: str = "*"
    said: str
    reason: str


LIMITS = (
    Limit(
        engine="rust",
        does="read",
        verb="read tag",
        said="takes no options",
        reason="its interface for Python reads the newest snapshot only",
    ),
    Limit(
        engine="pypaimon",
        case="MULTISET",
        said=r"Unsupported data type: MULTISET",
        reason="it does not know the type",
    ),
    Limit(
        engine="pypaimon",
        case="partial-update, sequence groups",
        said=r"does not yet implement: .*sequence-group",
        reason="it has no sequence groups and no aggregated columns",
    ),
    Limit(
        engine="rust",
        case="*ORC",
        does="write",
        said="ORC compression 'zstd' is not supported",
        reason="it writes no ORC with zstd, Paimon's default",
    ),
    Limit(
        engine="pypaimon",
        case="*Avro",
        does="write",
        said="Unsupported pyarrow type for Avro conversion: map",
        reason="it writes no MAP into Avro files",
    ),
    Limit(
        engine="[!o]*",
        case="value counts*",
        said=r"value-count \(this table has no primary key and counts equal rows, .* into an append-only table",
        reason="the kind is ours alone",
    ),
)


def told(outcomes: Iterator[Outcome], name: str, case: TableCase) -> Iterator[tuple[Outcome, str]]:
    """Every outcome in the words of docs/compatibility.md; an assertion fails for one that nobody knows."""
    for outcome in outcomes:
        limit = _limit(outcome, name)
        if limit is not None:
            assert outcome.result == REFUSES, f"{name}, {outcome}: the limit is gone: {limit.reason}"
            assert re.search(limit.said, outcome.said, re.DOTALL), f"{name}, {outcome}: other words than known"
            yield outcome, f"{REFUSES}: {limit.reason}"
        elif outcome.result in {LACKS, DIFFERS} and case.is_seen_when_compacted and outcome.step.verb != "compact":
            yield outcome, NOT_COMPACTED
        else:
            assert not outcome.said, f"{name}, {outcome.step}: {outcome.engine} {outcome.result}: {outcome.said}"
            yield outcome, outcome.result


def _limit(outcome: Outcome, name: str) -> Limit | None:
    of = (outcome.engine, name, outcome.does, outcome.step.verb)
    for limit in LIMITS:
        patterns = (limit.engine, limit.case, limit.does, limit.verb)
        if all(fnmatchcase(each, pattern) for each, pattern in zip(of, patterns, strict=True)):
            return limit
    return None
