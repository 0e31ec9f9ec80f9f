"""Errors that a stream may end with: only those whose reason is in the history of its source.

The history is replayed change by change, and the answer is computed after each of them. That is slow, and therefore
only done for a stream that has stopped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

from tests.differential.case import Append, Case, Compact, Drain, MoveDimension, Row, Step
from tests.differential.played_source import Bag, SourceModel
from tests.differential.verdict import has_several_rows_of_a_key, key_places

SHARED_KEY = ("two rows of the query share",)
NULL_IN_KEY = ("the key holds a null", "rows are null", "rows have no value")
NO_INSERT = ("append-only",)
NO_ROW_BEFORE = ("contradicts what is stored", "an insert of a key that is there")


Answers: TypeAlias = Callable[[Case, Bag], Bag]
"""The oracle: returns the answer of a case's query for these rows of the source."""


def is_permitted(case: Case, said: str, steps: Sequence[Step], answer_of: Answers, *, adds_up: bool) -> bool:
    """Return whether a stream that has read the changes of ``steps`` may stop with the message ``said``."""
    states = list(_states(case, steps))
    moments = _moments(case, steps)
    answers = [answer_of(each, rows) for each in moments for rows in states]
    if any(part in said for part in SHARED_KEY):
        is_shared = any(has_several_rows_of_a_key(case, each) for each in answers)
        return adds_up and (is_shared or any(_may_meet(each, states, answer_of) for each in moments))
    if any(part in said for part in NO_INSERT):
        return case.sink.is_append_only and any(_changes_rows(each, states, answer_of) for each in moments)
    if any(part in said for part in NO_ROW_BEFORE):
        is_without = case.sink.log == "all-input" and case.source.is_append_only
        return is_without and any(has_several_rows_of_a_key(case, each) for each in answers)
    if any(part in said for part in NULL_IN_KEY):
        places = key_places(case)
        return any(row[place] is None for each in answers for row in each for place in places)
    return False


def _may_meet(case: Case, states: Sequence[Bag], answer_of: Answers) -> bool:
    """Return whether a key moves between rows of a log without commits, so that rows of two moments may meet."""
    if not (case.source.is_eventual and case.source.buckets > 1):
        return False
    places, rows = key_places(case), {row for state in states for row in state}
    owners: dict[Row, set[Row]] = {}
    for row in rows:
        owner = tuple(row[place] for place in case.source.key_places)
        for found in answer_of(case, Counter([row])):
            owners.setdefault(tuple(found[place] for place in places), set()).add(owner)
    return any(len(each) > 1 for each in owners.values())


def _changes_rows(case: Case, states: Sequence[Bag], answer_of: Answers) -> bool:
    """Return whether a row of the source that was or is in the answer has been changed or deleted."""
    return any(
        before - after and (answer_of(case, before - after) or answer_of(case, after - before))
        for before, after in pairwise(states)
    )


def _states(case: Case, steps: Iterable[Step]) -> Iterator[Bag]:
    """Yield the source's content after each change that a stream may have seen on its own."""
    model = SourceModel(case.source)
    is_seen = not case.from_snapshot
    for step in steps:
        if isinstance(step, Drain):
            if not is_seen:
                yield model.rows()
            is_seen = True
        elif isinstance(step, Append):
            seen = list(_states_of(step, model, has_key=bool(case.source.key)))
            yield from seen if is_seen else ()
        elif not isinstance(step, Compact | MoveDimension):
            before = model.rows()
            model.overwrite(step)
            if is_seen:
                # Either deletions come first, or a row is updated in one step.
                yield before & model.rows()
                yield before
                yield model.rows()
    yield model.rows()


def _states_of(step: Append, model: SourceModel, *, has_key: bool) -> Iterator[Bag]:
    """Apply changes to ``model``, and yield the state after each one."""
    for change in step.changes:
        before = model.rows()
        for _ in model.complete([change]):
            pass
        if change[0] in ("+I", "+U") and before == model.rows():
            # A row that is rewritten with equal values has still changed: it is removed and added again.
            yield before - Counter([change[1]])
        yield model.rows()
        if change[0] == "+U" and not has_key:
            # Without a key an update adds a row, but still arrives as an update.
            yield model.rows() - Counter([change[1]])
            yield model.rows()


def _moments(case: Case, steps: Iterable[Step]) -> list[Case]:
    """Return the case with each state of the dimension."""
    dimensions: list[tuple[Row, ...]] = [case.dimension]
    dimensions += [step.rows for step in steps if isinstance(step, MoveDimension)]
    return [replace(case, dimension=each) for each in dict.fromkeys(dimensions)]
