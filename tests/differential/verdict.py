"""Checks of the content of a sink and of its log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from tests.differential.case import Case, Change, Row
from tests.differential.played_source import Bag

_SHOWN = 6
NULLABLE_KEY = "s.n"
"""The only key expression that may be null."""


def key_places(case: Case) -> tuple[int, ...]:
    """Return the positions of the sink's primary key in its columns."""
    names = [item.name for item in case.query.branches[0].items]
    return tuple(names.index(name) for name in case.sink.primary_key)


def has_several_rows_of_a_key(case: Case, expected: Bag) -> bool:
    """Return whether the answer has two rows, equal or not, for one key of the sink."""
    places = key_places(case)
    keys = Counter(tuple(row[place] for place in places) for row in expected.elements())
    return bool(places) and any(count > 1 for count in keys.values())


def difference(case: Case, expected: Bag, found: Bag) -> str | None:
    """Return the difference of the rows ``found`` from the expected ones, or None.

    A sink with a key must hold exactly one row for each key of the answer, one of the answer's rows for that key.
    """
    places = key_places(case)
    if not places:
        return _told(expected - found, found - expected)
    candidates: dict[Row, set[Row]] = {}
    for row in expected:
        candidates.setdefault(tuple(row[place] for place in places), set()).add(row)
    there = {tuple(row[place] for place in places): row for row in found}
    if sum(found.values()) != len(there):
        return f"the sink has several rows of a key: {_shown(found)}"
    missing = {row for key, rows in candidates.items() if there.get(key) not in rows for row in rows}
    wrong = {row for key, row in there.items() if row not in candidates.get(key, ())}
    return _told(Counter(missing), Counter(wrong))


def difference_from_any(
    moments: Sequence[Case], rows: Bag, found: Bag, answer: Callable[[Case, Bag], Bag]
) -> str | None:
    """Like ``difference`` if other tables have changed: ``moments`` are the case with each of their states.

    ``rows`` are the source's; ``answer`` returns the query's answer for a subset of them. Either the rows equal the
    first answer (the other tables were read at one snapshot throughout the stream), or each row of a table with a key
    was computed with one of the states, and so were rows that are never removed.
    """
    case, answers = moments[0], [answer(each, rows) for each in moments]
    wrong = difference(case, answers[0], found)
    places = key_places(case)
    is_added_only = case.source.is_append_only or case.sink.is_append_only
    if wrong is None or len(answers) == 1 or not (places or is_added_only):
        return wrong
    if not places:
        return _told(Counter(), found - sum(answers, Counter()))
    keys = [{tuple(row[place] for place in places) for row in answer} for answer in answers]
    possible = {row for answer in answers for row in answer}
    there = {tuple(row[place] for place in places) for row in found}
    missing = Counter(set[Row].intersection(*keys) - there)
    if missing:
        # Different source rows may have produced the key in different states, so perhaps no batch contained it.
        certain: set[Row] = set()
        for row in set(rows):
            of_row = [answer(each, Counter([row])) for each in moments]
            keys = [{tuple(found[place] for place in places) for found in each} for each in of_row]
            certain |= set[Row].intersection(*keys)
        missing = Counter(set(missing) & certain)
    return _told(missing, Counter({row: count for row, count in found.items() if row not in possible}))


def difference_of_log(case: Case, changes: Iterable[Change], found: Bag) -> str | None:
    """Return the fault in the log of a sink that holds the rows ``found``; ``changes`` are in order within a key."""
    places = key_places(case)
    if not places:
        counts: Counter[Row] = Counter()
        for kind, row in changes:
            counts[row] += -1 if kind in ("-U", "-D") else 1
        # Counted rows may arrive in any order within a commit.
        if -counts:
            return f"the log takes away what is not there: {_shown(-counts)}"
        return _told(found - counts, counts - found, "of the log")
    there: dict[Row, Row] = {}
    is_complete = case.sink.log in ("all-lookup", "all-input")
    for kind, row in changes:
        key = tuple(row[place] for place in places)
        old = there.pop(key, None)
        if is_complete and kind in ("-U", "-D") and old != row:
            return f"the log takes away another row than was there: {kind} {row}, there was {old}"
        if is_complete and kind in ("+I", "+U") and old is not None:
            return f"the log does not take away {old} before {kind} {row}"
        if kind in ("+I", "+U"):
            there[key] = row
    told = Counter(there.values())
    return _told(found - told, told - found, "of the log")


def _told(missing: Bag, wrong: Bag, of: str = "") -> str | None:
    if not missing and not wrong:
        return None
    return f"missing {of}: {_shown(missing)}; too much {of}: {_shown(wrong)}".replace(" :", ":")


def _shown(rows: Bag) -> str:
    text = ", ".join(str(row) for row in sorted(rows.elements(), key=str)[:_SHOWN])
    return f"{sum(rows.values())} rows ({text})" if rows else "nothing"
