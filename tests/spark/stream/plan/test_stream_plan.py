"""Planning of a streaming write from its query, without Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from storage_lib.errors import InvalidInputError
from storage_lib.spark.stream.plan.query_facts import facts_of
from storage_lib.spark.stream.plan.query_tree import (
    Expand,
    Filter,
    Fixed,
    FixedTable,
    Join,
    JoinKind,
    Node,
    Opaque,
    Project,
    Shuffle,
    Stream,
    StreamTable,
    Union,
    Value,
)
from storage_lib.spark.stream.plan.stream_plan import SinkKind, SinkTable, StreamPlan, plan_of

ID, CAT, N, KIND, POSITION, DIM_CAT, LABEL = range(1, 8)
SOURCE = StreamTable(
    name="db.src",
    columns={"id": ID, "cat": CAT, "n": N, "_row_kind": KIND},
    primary_keys=("id",),
    kind_column="_row_kind",
)
DIM = Fixed(table=FixedTable(name="db.dim"), columns=frozenset({DIM_CAT, LABEL}))
SRC = Stream(table=SOURCE)
BY_ID = SinkTable(
    name="db.sink",
    kind=SinkKind.NEWEST_WINS,
    columns={"id": ID, "v": N, "_row_kind": KIND},
    primary_keys=("id",),
    kind_column="_row_kind",
)
BY_ID_AND_CAT = replace(BY_ID, columns={**BY_ID.columns, "cat": CAT}, primary_keys=("id", "cat"))
APPENDED = replace(BY_ID, kind=SinkKind.APPENDS, primary_keys=())
AGGREGATED = replace(BY_ID, kind=SinkKind.AGGREGATES)
COUNTED = replace(BY_ID, kind=SinkKind.COUNTS, primary_keys=())


INPUT = replace(BY_ID, takes_rows_before=True)
ADDED_UP = ("lookup", "added up", False)
UNKEYED = Stream(table=replace(SOURCE, primary_keys=(), is_complete=True))
BOTH = Union(children=(SRC, SRC), columns={each: (each, each) for each in (ID, CAT, N, KIND)})


def on(*columns: int, **how: object) -> Value:
    return Value(reads=frozenset(columns), text="(n > 100)", **how)  # type: ignore[arg-type]


def joined(kind: JoinKind, node: Node = SRC, **how: object) -> Join:
    return Join(left=node, right=DIM, kind=kind, condition=on(CAT, DIM_CAT), **how)  # type: ignore[arg-type]


def planned(node: Node, sink: SinkTable = BY_ID) -> StreamPlan:
    return plan_of(facts_of(node), sink, carries_kind=True)


def summary(node: Node, sink: SinkTable = BY_ID) -> tuple[str | None, object, bool]:
    plan = planned(node, sink)
    return plan.normalize, "added up" if plan.adds_up else plan.carries_position, plan.pins


CASES: dict[str, tuple[Node, SinkTable, tuple[str | None, object, bool]]] = {
    "the key alone": (SRC, BY_ID, ("none", False, False)),
    "a filter on the key": (Filter(child=SRC, condition=on(ID)), BY_ID, ("none", False, False)),
    "a filter on a column that changes": (Filter(child=SRC, condition=on(N)), BY_ID, ("lookup", False, False)),
    "a left join": (joined(JoinKind.LEFT), BY_ID, ("none", True, False)),
    "a broadcast left join": (joined(JoinKind.LEFT, broadcasts_right=True), BY_ID, ("none", False, False)),
    "an inner join": (joined(JoinKind.INNER), BY_ID, ("lookup", True, True)),
    "a semi join": (joined(JoinKind.SEMI), BY_ID, ("lookup", True, True)),
    "a filter on a joined column": (
        Filter(child=joined(JoinKind.LEFT), condition=on(LABEL)),
        BY_ID,
        ("lookup", True, True),
    ),
    "a filter and a left join": (
        Filter(child=joined(JoinKind.LEFT), condition=on(N)),
        BY_ID,
        ("lookup", True, False),
    ),
    "a key that may change": (SRC, BY_ID_AND_CAT, ("lookup", False, False)),
    "a key that is joined": (
        joined(JoinKind.LEFT),
        replace(BY_ID_AND_CAT, columns={**BY_ID_AND_CAT.columns, "cat": LABEL}),
        ("lookup", True, True),
    ),
    "no key": (SRC, COUNTED, ("lookup", False, False)),
    "no key, joined": (joined(JoinKind.LEFT), COUNTED, ("lookup", True, True)),
    "a repartition": (Shuffle(child=SRC, what="repartition"), BY_ID, ("none", True, False)),
    "rows made of a list": (Expand(child=SRC, columns={20: on(CAT)}), BY_ID, ("lookup", False, False)),
    "a value with a query in it": (
        Project(
            child=SRC, columns={ID: on(ID, same_as=ID), N: on(CAT, tables=(DIM.table,)), KIND: on(KIND, same_as=KIND)}
        ),
        BY_ID,
        ("none", True, False),
    ),
    "a broadcast join on a condition with a query in it": (
        Join(left=SRC, right=DIM, kind=JoinKind.LEFT, condition=on(CAT, tables=(DIM.table,)), broadcasts_right=True),
        BY_ID,
        ("none", True, False),
    ),
    "a table that aggregates": (SRC, AGGREGATED, ("lookup", False, False)),
    "a table that aggregates, filtered": (Filter(child=SRC, condition=on(N)), AGGREGATED, ("lookup", False, False)),
    "a table that aggregates, joined": (joined(JoinKind.LEFT), AGGREGATED, ("lookup", True, True)),
    "a table that aggregates under another key": (
        SRC,
        replace(AGGREGATED, primary_keys=("v",)),
        ("lookup", False, False),
    ),
    "a table that merges": (joined(JoinKind.INNER), replace(BY_ID, kind=SinkKind.MERGES), (None, True, False)),
    "an append-only table": (SRC, APPENDED, ("lookup", False, False)),
    "an append-only table, filtered": (Filter(child=SRC, condition=on(N)), APPENDED, ("lookup", False, False)),
    "an append-only table, joined": (joined(JoinKind.LEFT), APPENDED, ("lookup", False, False)),
    "an append-only table, semi-joined": (joined(JoinKind.SEMI), APPENDED, ("lookup", False, True)),
    "an append-only table of rows that are counted": (UNKEYED, APPENDED, (None, False, False)),
    "a log that takes rows before": (SRC, INPUT, ("lookup", False, False)),
    "a filter before a log that takes rows before": (Filter(child=SRC, condition=on(N)), INPUT, ADDED_UP),
    "a join before a log that takes rows before": (joined(JoinKind.LEFT), INPUT, ("lookup", "added up", True)),
    "another key": (SRC, replace(BY_ID, primary_keys=("v",)), ADDED_UP),
    "no key in the source": (UNKEYED, BY_ID, (None, "added up", False)),
    "several streams": (BOTH, BY_ID, ADDED_UP),
    "several streams, counted": (BOTH, COUNTED, ("lookup", False, False)),
}


@pytest.mark.parametrize("case", CASES)
def test_rows_before_order_and_snapshots_are_asked_for_where_they_matter(case: str) -> None:
    node, sink, expected = CASES[case]

    assert summary(node, sink) == expected


def test_a_renamed_key_is_the_key_and_a_computed_one_is_not() -> None:
    renamed = Project(child=SRC, columns={30: on(ID, same_as=ID), 31: on(N)})
    computed = Project(child=SRC, columns={30: on(ID), 31: on(N)})
    sink = replace(BY_ID, columns={"id": 30, "v": 31})

    assert summary(renamed, sink) == ("none", False, False)
    assert summary(computed, sink) == ADDED_UP
    with pytest.raises(InvalidInputError, match="the rows that are stored can't be looked up"):
        planned(computed, replace(sink, looks_up=False))


def test_kinds_that_the_query_makes_itself_mean_what_it_says() -> None:
    own = Project(child=Filter(child=SRC, condition=on(N)), columns={ID: on(ID, same_as=ID), N: on(N), 40: Value()})
    judging = Filter(child=SRC, condition=on(KIND))

    for sink in (BY_ID, APPENDED):
        assert summary(own, replace(sink, columns={"id": ID, "v": N, "_row_kind": 40})) == (None, False, False)
        assert summary(judging, sink) == (None, False, False)


def test_changes_without_their_kind_are_refused() -> None:
    without = replace(BY_ID, columns={"id": ID, "v": N})

    with pytest.raises(InvalidInputError, match="have lost the column _row_kind"):
        plan_of(facts_of(SRC), without, carries_kind=False)


@pytest.mark.parametrize("node", [Filter(child=SRC, condition=on(N)), joined(JoinKind.INNER)])
def test_an_explicit_none_that_would_be_wrong_is_refused(node: Node) -> None:
    none = replace(SOURCE, normalize="none")

    with pytest.raises(InvalidInputError, match=r"scan.normalize=none leaves out. Remove that option, or .*lookup"):
        planned(_over(none, node))


def test_an_explicit_none_adds_every_update_to_a_table_that_aggregates() -> None:
    none = replace(SOURCE, normalize="none")

    assert summary(_over(none, joined(JoinKind.LEFT)), AGGREGATED) == (None, True, False)


def _over(table: StreamTable, node: Node) -> Node:
    stream = Stream(table=table)
    if isinstance(node, Filter):
        return replace(node, child=stream)
    assert isinstance(node, Join)
    return replace(node, left=stream)


def test_the_files_of_an_eventual_table_are_behind_so_the_stream_keeps_the_rows() -> None:
    eventual = Stream(table=replace(SOURCE, is_eventual=True))

    assert planned(Filter(child=eventual, condition=on(N))).normalize == "state"


@pytest.mark.parametrize("of", [{"normalize": "lookup"}, {"normalize": "state"}, {"is_complete": True}])
def test_changes_that_come_with_the_rows_before_them_are_left_as_they_are(of: dict[str, object]) -> None:
    complete = Stream(table=replace(SOURCE, **of))  # type: ignore[arg-type]

    assert planned(Filter(child=complete, condition=on(N))).normalize is None


@pytest.mark.parametrize("sink", [COUNTED, BY_ID_AND_CAT, APPENDED, AGGREGATED])
def test_what_can_not_be_computed_twice_is_refused_where_it_would_have_to_be(sink: SinkTable) -> None:
    by_chance = Filter(child=SRC, condition=on(N, is_stable=False))

    with pytest.raises(InvalidInputError, match="left to chance"):
        planned(by_chance, sink)


def test_a_time_of_writing_may_be_kept_with_appended_rows() -> None:
    now = Project(child=SRC, columns={ID: on(ID, same_as=ID), 40: on(is_stable=False), KIND: on(KIND, same_as=KIND)})
    sink = replace(APPENDED, columns={"id": ID, "v": 40, "_row_kind": KIND})

    assert summary(now, sink) == ("lookup", False, False)


def test_a_source_whose_keys_move_between_partitions_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="lacks a partition column, so a key moves between partitions"):
        planned(Stream(table=replace(SOURCE, moves_keys=True)))


def test_added_rows_are_appended_as_they_come() -> None:
    added = StreamTable(name="db.src", columns={"id": ID, "n": N})
    plan = plan_of(facts_of(Stream(table=added)), replace(APPENDED, columns={"id": ID, "v": N}), carries_kind=False)

    assert plan == StreamPlan()


def test_added_rows_are_put_into_order_by_the_last_of_a_key() -> None:
    added = StreamTable(name="db.src", columns={"id": ID, "n": N})
    plan = plan_of(facts_of(Stream(table=added)), replace(BY_ID, columns={"id": ID, "v": N}), carries_kind=False)

    assert (plan.carries_position, plan.needs_position) == (True, False)


def test_results_of_several_rows_are_the_users() -> None:
    combined = Opaque(children=(SRC,), what="Aggregate", combines=True, columns=frozenset({ID, N}))

    assert planned(combined) == StreamPlan()


@pytest.mark.parametrize("what", ["Deduplicate", "Aggregate", "GlobalLimit"])
def test_the_kind_of_one_of_several_changes_is_not_that_of_their_result(what: str) -> None:
    combined = Opaque(children=(SRC,), what=what, combines=True, columns=frozenset({ID, N, KIND}))

    with pytest.raises(InvalidInputError, match=f"{what} makes rows of several changes of db.src"):
        planned(combined)


def test_work_of_sparks_that_is_not_known_is_refused_and_functions_are_the_users() -> None:
    columns = frozenset({ID, N, KIND})

    with pytest.raises(InvalidInputError, match=r"what Spark's Novelty does to changes of db.src is not known here"):
        planned(Opaque(children=(SRC,), what="Novelty", columns=columns))
    assert planned(Opaque(children=(SRC,), what="MapInPandas", is_function=True, columns=columns)).normalize is None


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.SEMI])
def test_a_join_with_rows_that_are_left_to_chance_is_refused(kind: JoinKind) -> None:
    at_chance = Filter(child=DIM, condition=Value(is_stable=False))

    with pytest.raises(InvalidInputError, match="left to chance"):
        planned(Join(left=SRC, right=at_chance, kind=kind, condition=on(CAT, DIM_CAT)))


def test_a_foreign_stream_of_changes_is_refused_where_it_may_be_reordered() -> None:
    foreign = Stream(table=StreamTable(name="a stream of json", columns=SOURCE.columns, is_foreign=True))

    assert summary(foreign) == (None, False, False)
    assert planned(joined(JoinKind.LEFT, foreign)).needs_position
    assert not planned(joined(JoinKind.LEFT, foreign, broadcasts_right=True)).carries_position


def test_a_deletion_of_a_topic_is_not_dropped_by_a_value_that_it_may_leave_out() -> None:
    keys = ("id", "_row_kind")
    told = StreamTable(name="topic 't'", columns=SOURCE.columns, primary_keys=keys, is_foreign=True, leaves_out=True)
    topic, whole = Stream(table=told), Stream(table=replace(told, leaves_out=False))

    for dropping in (Filter(child=topic, condition=on(N)), joined(JoinKind.INNER, topic, broadcasts_right=True)):
        with pytest.raises(InvalidInputError, match=r"values that deletions of topic 't' may leave out.*before-image"):
            planned(dropping)
        assert planned(dropping, APPENDED) == StreamPlan()
    for kept in (
        Filter(child=topic, condition=on(ID)),
        Filter(child=topic, condition=on(KIND)),
        joined(JoinKind.LEFT, topic, broadcasts_right=True),
        Filter(child=whole, condition=on(N)),
    ):
        assert planned(kept) == StreamPlan()


def test_the_plan_says_why() -> None:
    plan = planned(Filter(child=joined(JoinKind.INNER), condition=on(N)))

    assert str(plan) == (
        "scan.normalize=lookup (the join with db.dim may take in a row at one time and not at another; WHERE (n > 100) "
        "may take in a row at one time and not at another); rows are put back into the source's order (the join with "
        "db.dim); other tables are read at one snapshot for the life of the stream (which rows are taken away follows "
        "from them)"
    )
