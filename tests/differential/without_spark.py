"""Runs cases without Spark: the product plans and rewrites the query; DuckDB executes it.

DuckDB answers the rewritten query on the changes of each batch. Spark's exchanges may reorder rows arbitrarily, so if
the query has one, rows are shuffled. Otherwise the rows of a bucket stay in order, and those of several buckets are
interleaved at random.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.schema.types.row_kind import ROW_KIND_SYMBOLS
from storage_lib.spark.types.spark_schema import ROW_POSITION
from storage_lib.table.changes.answer_rows import AnswerRows, SharedKeyError
from storage_lib.table.changes.rows_in_order import rows_in_order
from tests.differential.case import Case, Change
from tests.differential.decisions import KIND, Decision, decided
from tests.differential.oracle import Oracle
from tests.differential.outcome import Outcome
from tests.differential.permitted_stops import is_permitted
from tests.differential.played_source import Bag, arrow_rows
from tests.differential.simulated_stream import Event, SimulatedStream
from tests.differential.verdict import (
    difference_from_any,
    difference_of_log,
    key_places,
)

_BITS_OF_A_BUCKET = 36


class WithoutSpark:
    """Runs cases one after the other."""

    def __init__(self) -> None:
        self._oracle = Oracle()

    def run(self, case: Case) -> Outcome:
        try:
            decision = decided(case)
        except InvalidInputError as error:
            return Outcome(verdict="refused", said=str(error))
        rng = Random(case.seed)  # noqa: S311  chance, not secrets
        plan, sink = decision.plan, _SinkModel(case)
        drains = 0
        moments: list[Case] = []
        for batch in SimulatedStream(case, plan.normalize, whole_commits=plan.adds_up).batches():
            if not moments or moments[-1].dimension != batch.dimension:
                moments.append(replace(case, dimension=batch.dimension))
            changes = self._changes(moments[0 if plan.pins else -1], decision, batch.events, rng)
            stopped = sink.add_up(changes) if plan.adds_up else sink.write(changes)
            if stopped is not None:
                if is_permitted(case, stopped, case.steps[: batch.steps], self._answer, adds_up=plan.adds_up):
                    return Outcome(verdict="stopped", said=stopped, drains=drains)
                return _wrong(stopped, batch.rows, drains)
            wrong = difference_from_any(moments, batch.rows, sink.rows(), self._answer) or sink.difference_of_log()
            if wrong is not None:
                return _wrong(wrong, batch.rows, drains)
            drains += 1
        return Outcome(verdict="right", drains=drains)

    def _answer(self, case: Case, rows: Bag) -> Bag:
        return self._oracle.answer(case, rows.elements())

    def _changes(self, moment: Case, decision: Decision, events: Sequence[Event], rng: Random) -> list[Change]:
        columns = [*moment.source.columns, (KIND, "STRING"), (ROW_POSITION, "BIGINT")]
        rows = [(*row, kind, position) for (kind, row, _), position in _arrived(rng, events)]
        found = decision.answer(self._oracle, moment, arrow_rows(columns, rows), rng)
        if decision.plan.carries_position:
            ordered = list(rows_in_order(found.to_batches(), ROW_POSITION))
            found = pa.Table.from_batches(ordered, found.drop_columns([ROW_POSITION]).schema)
        names = [item.name for item in moment.query.branches[0].items]
        values = zip(*(found[name].to_pylist() for name in names), strict=True)
        kinds = ["+I"] * found.num_rows if moment.source.is_append_only else found[KIND].to_pylist()
        return list(zip(kinds, values, strict=True))


class _SinkModel:
    """Model of the table into which changes are written."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._places = key_places(case)
        self._keyed: dict[tuple[object, ...], tuple[object, ...]] = {}
        self._bag: Bag = Counter()
        self._told: list[Change] = []

    def write(self, changes: list[Change]) -> str | None:
        """Write changes; return None, or the reason why the table refuses them."""
        for kind, row in changes:
            self._told.append((kind, row))
            if self._case.sink.log == "all-input" and self._case.source.is_append_only:
                key = tuple(row[place] for place in self._places)
                if key in self._keyed:
                    return "an insert of a key that is there, in a log that is to hold the row before"
            if self._case.sink.is_append_only and kind != "+I":
                return "an append-only table takes inserts only"
            if not self._places:
                self._bag[row] += -1 if kind in ("-U", "-D") else 1
                continue
            key = tuple(row[place] for place in self._places)
            if any(value is None for value in key):
                return "the key holds a null"
            self._keyed.pop(key, None)
            if kind in ("+I", "+U"):
                self._keyed[key] = row
        return None

    def add_up(self, changes: list[Change]) -> str | None:
        """Like ``write`` if a key's rows come from several source rows: the product adds them up first."""
        if any(row[place] is None for _, row in changes for place in self._places):
            return "the key holds a null"
        columns = [(item.name, item.type) for item in self._case.query.branches[0].items]
        rows = arrow_rows(columns, [row for _, row in changes])
        kinds = pa.array([ROW_KIND_SYMBOLS.index(kind) for kind, _ in changes], pa.int8())
        answer = AnswerRows(
            table="sink",
            primary_keys=self._case.sink.primary_key,
            find=lambda keys: self._stored(columns, keys),
        )
        try:
            found = list(answer.changes((batch, kinds) for batch in rows.combine_chunks().to_batches()))
        except SharedKeyError as error:
            return str(error)
        return self.write(
            [
                (ROW_KIND_SYMBOLS[kind], tuple(row.values()))
                for batch, codes in found
                for row, kind in zip(batch.to_pylist(), codes.to_pylist(), strict=True)
            ]
        )

    def _stored(self, columns: Sequence[tuple[str, str]], keys: pa.Table) -> pa.Table:
        wanted = {tuple(row[name] for name in self._case.sink.primary_key) for row in keys.to_pylist()}
        return arrow_rows(columns, [row for key, row in self._keyed.items() if key in wanted])

    def rows(self) -> Bag:
        return Counter(self._keyed.values()) if self._places else +self._bag

    def difference_of_log(self) -> str | None:
        """Return the fault of a log whose changes are those of the query, in order, or None."""
        if any(count < 0 for count in self._bag.values()):
            return f"rows were taken away that are not there: {-self._bag}"
        if self._case.sink.log == "all-input" or not self._places:
            return difference_of_log(self._case, self._told, self.rows())
        return None


def _arrived(rng: Random, events: Sequence[Event]) -> list[tuple[Event, int]]:
    """Return the changes with their positions: in order within each bucket, buckets interleaved."""
    counts: Counter[int] = Counter()
    of_bucket: dict[int, list[tuple[Event, int]]] = {}
    for event in events:
        position = (event[2] << _BITS_OF_A_BUCKET) + counts[event[2]]
        counts[event[2]] += 1
        of_bucket.setdefault(event[2], []).append((event, position))
    arrived = []
    while of_bucket:
        bucket = rng.choice(list(of_bucket))
        arrived.append(of_bucket[bucket].pop(0))
        if not of_bucket[bucket]:
            del of_bucket[bucket]
    return arrived


def _wrong(said: str, rows: Bag, drains: int) -> Outcome:
    return Outcome(
        verdict="wrong", said=f"after batch {drains + 1}: {said}\nsource: {sorted(rows.elements(), key=str)}"
    )
