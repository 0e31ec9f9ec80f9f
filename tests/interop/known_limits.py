"""Known limitations of other engines, with their reasons; the first match applies.

The suite fails for a limitation that no longer exists, as for a new one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tests.interop.one_life import DIFFERS, LACKS, REFUSES, Outcome
from tests.interop.table_cases import TableCase

NOT_COMPACTED = "omits rows that were written after the last compaction"


@dataclass(frozen=True, kw_only=True)
class Limit:
    """One limitation; ``engine``, ``case``, ``does`` and ``verb`` are patterns, ``said`` is part of the error."""

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
        reason="its Python interface reads the newest snapshot only",
    ),
    Limit(
        engine="pypaimon",
        case="MULTISET",
        said=r"Unsupported data type: MULTISET",
        reason="it does not support the type",
    ),
    Limit(
        engine="pypaimon",
        case="partial-update, sequence groups",
        said=r"does not yet implement: .*sequence-group",
        reason="it supports neither sequence groups nor aggregated columns",
    ),
    Limit(
        engine="rust",
        case="*ORC",
        does="write",
        said="ORC compression 'zstd' is not supported",
        reason="it can't write ORC with zstd, Paimon's default",
    ),
    Limit(
        engine="pypaimon",
        case="*Avro",
        does="write",
        said="Unsupported pyarrow type for Avro conversion: map",
        reason="it can't write MAP columns to Avro files",
    ),
    Limit(
        engine="[!o]*",
        case="value counts*",
        said=r"value-count \(this table has no primary key and counts equal rows, .* into an append-only table",
        reason="only this library supports this kind of table",
    ),
)


def told(outcomes: Iterator[Outcome], name: str, case: TableCase) -> Iterator[tuple[Outcome, str]]:
    """Yield each outcome with its text for docs/compatibility.md; an unknown one fails an assertion."""
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
