"""Reduces a wrong case to a smaller one by removing parts as long as it stays wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.differential.case import Append, Branch, Case, Overwrite, Sink, Source, Step


def smaller(case: Case, is_wrong: Callable[[Case], bool], *, tries_max: int = 400) -> Case:
    """Return the smallest case found within ``tries_max`` attempts. ``case`` itself must be wrong."""
    tries = 0
    found = True
    while found:
        found = False
        for candidate in _candidates(case):
            tries += 1
            if tries > tries_max:
                return case
            if is_wrong(candidate):
                case, found = candidate, True
                break
    return case


def _candidates(case: Case) -> Iterator[Case]:
    """Yield cases with one part removed, large parts first."""
    yield from _fewer_steps(case)
    yield from _simpler_tables(case)
    yield from _smaller_queries(case)
    yield from _fewer_columns(case)


def _fewer_steps(case: Case) -> Iterator[Case]:
    count = len(case.steps)
    for size in (count // 2, 1):
        for start in range(0, count, size) if size else ():
            yield replace(case, steps=(*case.steps[:start], *case.steps[start + size :]))
    for place, step in enumerate(case.steps):
        for other in _smaller_steps(step):
            yield replace(case, steps=(*case.steps[:place], other, *case.steps[place + 1 :]))


def _simpler_tables(case: Case) -> Iterator[Case]:
    if not case.from_snapshot:
        yield replace(case, from_snapshot=True)
    if case.normalize is not None:
        yield replace(case, normalize=None)
    for sink in _simpler_sinks(case.sink):
        yield replace(case, sink=sink)
    for source in _simpler_sources(case.source):
        yield replace(case, source=source)
    if case.details:
        yield replace(case, details=case.details[:-1])
        yield replace(case, details=case.details[1:])
    for place in range(len(case.dimension)):
        yield replace(case, dimension=(*case.dimension[:place], *case.dimension[place + 1 :]))


def _smaller_steps(step: Step) -> Iterator[Step]:
    if isinstance(step, Append):
        yield from (replace(step, changes=part) for part in _parts(step.changes))
    elif isinstance(step, Overwrite):
        yield from (replace(step, rows=part) for part in _parts(step.rows))


def _parts(values: tuple) -> Iterator[tuple]:  # type: ignore[type-arg]
    count = len(values)
    for size in (count // 2, 1):
        for start in range(0, count, size) if size else ():
            yield (*values[:start], *values[start + size :])


def _simpler_sinks(sink: Sink) -> Iterator[Sink]:
    for change in (
        {"buckets": 1},
        {"log": "none", "consistency": "transactional"},
        {"consistency": "transactional"},
        {"partition": None},
    ):
        simpler = replace(sink, **change)
        if simpler != sink:
            yield simpler


def _simpler_sources(source: Source) -> Iterator[Source]:
    if source.is_eventual:
        yield replace(source, is_eventual=False)
        return
    for change in ({"buckets": 1}, {"log": "none"}, {"log": "upsert"}):
        simpler = replace(source, **change)
        if simpler != source and not (change.get("log") == "upsert" and source.log == "none"):
            yield simpler


def _smaller_queries(case: Case) -> Iterator[Case]:
    query = case.query
    if query.carried:
        yield replace(case, query=replace(query, carried=()))
    if query.form != "plain":
        yield replace(case, query=replace(query, form="plain"))
    if len(query.branches) > 1:
        for branch in query.branches:
            yield replace(case, query=replace(query, branches=(branch,)))
    for number, branch in enumerate(query.branches):
        for place in range(len(branch.conditions)):
            fewer = replace(branch, conditions=(*branch.conditions[:place], *branch.conditions[place + 1 :]))
            branches = (*query.branches[:number], fewer, *query.branches[number + 1 :])
            yield replace(case, query=replace(query, branches=branches))


def _fewer_columns(case: Case) -> Iterator[Case]:
    items = case.query.branches[0].items
    kept = {*case.sink.primary_key, case.sink.partition}
    for place, item in enumerate(items):
        if item.name not in kept and len(items) > 1:
            branches = tuple(_without(branch, place) for branch in case.query.branches)
            yield replace(case, query=replace(case.query, branches=branches))


def _without(branch: Branch, place: int) -> Branch:
    return replace(branch, items=(*branch.items[:place], *branch.items[place + 1 :]))
