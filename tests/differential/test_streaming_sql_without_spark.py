"""Random streaming INSERTs compared with DuckDB's batch answer; DuckDB and randomness replace Spark.

For more of them: `python -m tests.differential.run --seed-from 0 --seed-to 100000 --processes 2`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("pyspark")

from storage_lib.spark.stream.plan.query_facts import QueryFacts
from storage_lib.spark.stream.plan.stream_plan import SinkTable, StreamPlan, plan_of
from tests.differential import decisions
from tests.differential.case import (
    SOURCE,
    Append,
    Branch,
    Case,
    Change,
    Drain,
    Item,
    Overwrite,
    Sink,
    Source,
    StreamQuery,
)
from tests.differential.cases import random_case
from tests.differential.in_memory import InMemory
from tests.differential.oracle import Oracle
from tests.differential.outcome import Tally
from tests.differential.permitted_stops import is_permitted
from tests.differential.run import report, shrunk
from tests.differential.shrink import smaller
from tests.differential.without_spark import WithoutSpark
from tests.support.deep_tests import thinned

CASES = 2000
AT_ONCE = 250
CASES_IN_MEMORY = 60
AT_ONCE_IN_MEMORY = 20
SHARE_RIGHT_MIN = 0.4
"""Minimum share of correct cases; most others have a sink whose key is not the source's, which is refused."""


@pytest.mark.parametrize("first", thinned(range(0, CASES, AT_ONCE), keep=2))
def test_after_each_batch_the_sink_holds_the_answer(first: int) -> None:
    runner, tally = WithoutSpark(), Tally()
    for seed in range(first, first + AT_ONCE):
        case = random_case(seed)
        outcome = runner.run(case)
        assert outcome.verdict != "wrong", report(*shrunk(case))
        tally.add(outcome)
    assert tally.share_right >= SHARE_RIGHT_MIN, str(tally)


@pytest.mark.parametrize("first", thinned(range(0, CASES_IN_MEMORY, AT_ONCE_IN_MEMORY)))
def test_tables_in_memory_hold_the_answer(first: int) -> None:
    runner, tally = InMemory(), Tally()
    for seed in range(first, first + AT_ONCE_IN_MEMORY):
        case = random_case(seed)
        outcome = runner.run(case)
        assert outcome.verdict != "wrong", report(*shrunk(case, in_memory=True))
        tally.add(outcome)
    assert tally.share_right >= SHARE_RIGHT_MIN, str(tally)


@pytest.mark.parametrize("left_out", ["the order", "the rows before", "the pinned tables"])
def test_a_plan_that_leaves_something_out_is_found(left_out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def plan(facts: QueryFacts, sink: SinkTable, *, carries_kind: bool) -> StreamPlan:
        right = plan_of(facts, sink, carries_kind=carries_kind)
        if left_out == "the order":
            return replace(right, carries_position=False)
        if left_out == "the rows before":
            return replace(right, normalize=None)
        return replace(right, pins=False)

    monkeypatch.setattr(decisions, "plan_of", plan)
    runner = WithoutSpark()
    wrong = next(case for case in map(random_case, range(500)) if runner.run(case).verdict == "wrong")

    small = smaller(wrong, lambda case: runner.run(case).verdict == "wrong", tries_max=40)

    assert runner.run(small).verdict == "wrong"
    assert len(str(small)) <= len(str(wrong))


KEYED = Source(columns=(("k", "BIGINT"), ("n", "BIGINT")), key=("k",), partition=None, buckets=1, log="upsert")
APPENDS = Sink(key=(), partition=None, buckets=1, log="none", is_append_only=True)


def case_of(source: Source, sink: Sink, *steps: Append | Drain, conditions: tuple[str, ...] = ()) -> Case:
    names = ("k", "n") if sink.key else ("n",)
    items = tuple(Item(sql=f"s.{name}", type="BIGINT", name=name) for name in names)
    query = StreamQuery(branches=(Branch(items=items, tables=f"{SOURCE} s", conditions=conditions),))
    return Case(
        seed=0,
        source=source,
        dimension=(),
        details=(),
        query=query,
        sink=sink,
        steps=steps,
        from_snapshot=False,
    )


@pytest.mark.parametrize("runner", [WithoutSpark, InMemory])
@pytest.mark.parametrize("change", [("+U", (1, 3)), ("+I", (1, 3)), ("+I", (1, 8)), ("-D", (1, None))])
def test_an_append_only_sink_does_not_keep_a_row_that_has_left_the_answer(
    runner: type[WithoutSpark | InMemory], change: Change
) -> None:
    first, second = Append(changes=(("+I", (1, 9)),)), Append(changes=(change,))

    at_once = case_of(KEYED, APPENDS, first, second, Drain(), conditions=("s.n > 5",))
    later = case_of(KEYED, APPENDS, first, Drain(), second, Drain(), conditions=("s.n > 5",))

    for case in (at_once, later):
        outcome = runner().run(case)
        assert outcome.verdict == "stopped", outcome.said
        assert "append-only" in outcome.said


@pytest.mark.parametrize("runner", [WithoutSpark, InMemory])
def test_an_append_only_sink_takes_what_a_keyed_source_inserts(runner: type[WithoutSpark | InMemory]) -> None:
    first = Append(changes=(("+I", (1, 9)), ("+I", (2, 3))))
    second = Append(changes=(("+I", (3, 9)), ("+U", (2, 4))))
    case = case_of(KEYED, APPENDS, first, Drain(), second, Drain(), conditions=("s.n > 5",))

    assert runner().run(case).verdict == "right"


@pytest.mark.parametrize(
    ("change", "is_permitted_to_stop"),
    [
        (("+I", (2, 9)), False),
        (("-D", (2, None)), False),
        (("+U", (1, 8)), True),
        (("+U", (1, 9)), True),
        (("+U", (1, 2)), True),
        (("-D", (1, None)), True),
    ],
)
def test_an_append_only_sink_may_refuse_only_what_changes_a_row_of_the_answer(
    change: Change, *, is_permitted_to_stop: bool
) -> None:
    steps = (Append(changes=(("+I", (1, 9)), ("+I", (3, 1)))), Append(changes=(change,)), Drain())
    case = case_of(KEYED, APPENDS, *steps, conditions=("s.n > 5",))
    oracle = Oracle()

    for said in ("append-only", "two rows of the query share the key", "any other error"):
        found = is_permitted(case, said, steps, lambda each, rows: oracle.answer(each, rows.elements()), adds_up=True)
        assert found is (is_permitted_to_stop and said == "append-only"), said


@pytest.mark.parametrize("is_overwrite", [False, True])
def test_an_append_only_sink_may_refuse_a_row_that_an_update_brings_into_the_answer(*, is_overwrite: bool) -> None:
    oracle = Oracle()
    overwritten = (Append(changes=(("+I", (1, 3)),)), Overwrite(rows=((1, 9),), partition=None), Drain())
    named_update = (Append(changes=(("+U", (1, 9)),)), Drain())
    steps, source = (overwritten, KEYED) if is_overwrite else (named_update, replace(KEYED, key=()))
    case = case_of(source, APPENDS, *steps, conditions=("s.n > 5",))

    assert is_permitted(
        case, "append-only", steps, lambda each, rows: oracle.answer(each, rows.elements()), adds_up=True
    )


@pytest.mark.parametrize("is_later", [False, True])
def test_added_rows_of_one_key_are_refused_where_the_log_takes_the_rows_before_from_the_input(
    *, is_later: bool
) -> None:
    source = replace(KEYED, key=(), is_append_only=True)
    sink = Sink(key=("k",), partition=None, buckets=1, log="all-input")
    first, again = Append(changes=(("+I", (1, 9)),)), Append(changes=(("+I", (1, 3)),))
    between = (Drain(),) if is_later else ()

    outcome = InMemory().run(case_of(source, sink, first, *between, again, Drain()))

    assert outcome.verdict == "stopped"
    assert "contradicts what is stored" in outcome.said
    assert InMemory().run(case_of(source, sink, first, Drain())).verdict == "right"
