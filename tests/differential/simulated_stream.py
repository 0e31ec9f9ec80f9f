"""Simulated stream of the source: changes in order within each bucket, cut into batches at random.

It replaces ``DynamicTable.stream``, whose own tests show the same behaviour: the first snapshot's rows as inserts,
then the changes as they were written, upserts or complete changes with the old rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from tests.differential.case import Append, Case, Change, Compact, Drain, MoveDimension, Row
from tests.differential.played_source import Bag, SourceModel

Event = tuple[str, Row, int]
"""Kind, row and bucket of a change."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One micro-batch, the source's content as delivered so far, and the dimension at that moment.

    ``steps`` is the number of the case's steps up to then.
    """

    events: tuple[Event, ...]
    rows: Bag
    dimension: tuple[Row, ...]
    steps: int


class SimulatedStream:
    """Stream of one case; ``normalize`` is the plan's. ``whole_commits``: batches end at commit boundaries."""

    def __init__(self, case: Case, normalize: str | None, *, whole_commits: bool = False) -> None:
        self._case = case
        is_asked_for = (normalize or case.normalize) in ("lookup", "state")
        self._is_complete = is_asked_for or not case.source.key or case.source.log.startswith("all-")
        # A log-first table has no commits in its log.
        self._whole_commits = whole_commits and not case.source.is_eventual
        self._commit = 0
        self._steps = 0
        self._rng = Random(case.seed)  # noqa: S311  chance, not secrets
        self._model = SourceModel(case.source)
        self._heard: dict[Row, Row] = {}
        self._heard_bag: Bag = Counter()
        self._dimension = case.dimension
        self._pending: dict[int, list[tuple[int, Change]]] = {}
        """Pending changes by bucket, each with the number of its commit."""

    def batches(self) -> Iterator[Batch]:
        has_begun = not self._case.from_snapshot
        for step in self._case.steps:
            self._steps += 1
            if isinstance(step, Compact):
                continue
            if isinstance(step, MoveDimension):
                self._dimension = step.rows
                continue
            if isinstance(step, Drain):
                if not has_begun:
                    first = list(self._model.rows().elements())
                    self._rng.shuffle(first)
                    self._pending = {}
                    self._put(("+I", row) for row in first)
                    has_begun = True
                yield from self._drained(step.rows_max)
                continue
            if isinstance(step, Append):
                changes = list(self._with_whole_deletes(step.changes))
            else:
                before = self._model.rows()
                self._model.overwrite(step)
                after = self._model.rows()
                changes = [("-D", row) for row in before - after] + [("+U", row) for row in after - before]
                changes = _last_of_each_key(self._case, changes)
            if has_begun:
                self._put(iter(changes))

    def _with_whole_deletes(self, changes: tuple[Change, ...]) -> Iterator[Change]:
        """Complete deletions to the stored row, as the log does; leave deletions of missing rows unchanged."""
        places = self._case.source.key_places
        for change in changes:
            before = {tuple(row[place] for place in places): row for row in self._model.rows()} if places else {}
            for kind, row in self._model.complete([change]):
                key = tuple(row[place] for place in places)
                yield kind, before.get(key, row) if places and kind in ("-U", "-D") else row

    def _put(self, changes: Iterator[Change]) -> None:
        self._commit += 1
        for kind, row in changes:
            self._pending.setdefault(self._bucket(row), []).append((self._commit, (kind, row)))

    def _bucket(self, row: Row) -> int:
        places = self._case.source.key_places
        return hash(repr([row[place] for place in places if self._case.source.names[place] != "p"])) % (
            self._case.source.buckets
        )

    def _drained(self, rows_max: int | None) -> Iterator[Batch]:
        while any(self._pending.values()):
            events: list[Event] = []
            for bucket, count in self._shares(rows_max).items():
                taken, self._pending[bucket] = self._pending[bucket][:count], self._pending[bucket][count:]
                events += [(kind, row, bucket) for _, change in taken for kind, row in self._heard_as(change)]
            rows = Counter(self._heard.values()) if self._case.source.key else +self._heard_bag
            yield Batch(events=tuple(events), rows=rows, dimension=self._dimension, steps=self._steps)

    def _shares(self, rows_max: int | None) -> dict[int, int]:
        """Return the number of changes of each bucket in the next batch."""
        behind = {bucket: len(changes) for bucket, changes in self._pending.items() if changes}
        if rows_max is None:
            return behind
        if not self._whole_commits:
            return {bucket: max(1, rows_max // len(behind)) for bucket in behind}
        commits = sorted(commit for changes in self._pending.values() for commit, _ in changes)
        last = commits[min(rows_max, len(commits)) - 1]
        if rows_max < len(commits) and commits[rows_max] == last and last > commits[0]:
            last = max(commit for commit in commits if commit < last)
        return {bucket: sum(commit <= last for commit, _ in self._pending[bucket]) for bucket in behind}

    def _heard_as(self, change: Change) -> Iterator[Change]:
        kind, row = change
        if not self._case.source.key:
            self._heard_bag[row] += -1 if kind in ("-U", "-D") else 1
            yield change
            return
        key = tuple(row[place] for place in self._case.source.key_places)
        old = self._heard.pop(key, None)
        if kind in ("+I", "+U"):
            self._heard[key] = row
        if not self._is_complete:
            yield change
        elif kind in ("-U", "-D"):
            if old is not None:
                yield "-D", old
        elif old is None:
            yield "+I", row
        else:
            yield "-U", old
            yield "+U", row


def _last_of_each_key(case: Case, changes: list[Change]) -> list[Change]:
    """Reduce changes to the last one of each key; a row that exists under its key is an update."""
    places = case.source.key_places
    put = {tuple(row[place] for place in places) for kind, row in changes if kind == "+U"}
    return [each for each in changes if each[0] == "+U" or tuple(each[1][place] for place in places) not in put]
