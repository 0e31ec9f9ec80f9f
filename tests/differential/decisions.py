"""The product's plan for the query of a case, and the rewritten query text, computed without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.spark.stream.plan.query_facts import facts_of
from storage_lib.spark.stream.plan.query_tree import Filter, Join, Node, Project, Union
from storage_lib.spark.stream.plan.stream_plan import SinkKind, SinkTable, StreamPlan, plan_of
from storage_lib.spark.types.spark_schema import ROW_POSITION
from storage_lib.sql.text.query_tables import read_query
from storage_lib.sql.text.source_text import SourceText
from tests.differential.case import DETAILS, DIMENSION, SOURCE, Case, Sink
from tests.differential.oracle import Oracle
from tests.differential.query_trees import QueryTree

KIND = "_row_kind"
ARRIVED = "_arrived"


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Planned query. ``text`` includes the requested columns; ``reorders``: Spark's plan may contain an exchange.

    ``tells_arrival``: Spark's joins would keep the order, DuckDB's do not; column ``_arrived`` restores it.
    """

    plan: StreamPlan
    text: str
    reorders: bool
    tells_arrival: bool = False

    def answer(self, oracle: Oracle, case: Case, source: pa.Table, rng: Random) -> pa.Table:
        """Run the rewritten query on changes in arrival order; return its rows in an order possible in Spark."""
        arrived = pa.array(range(source.num_rows), pa.int64())
        found = oracle.arrow_answer(case, self.text, source.append_column(ARRIVED, arrived))
        if self.tells_arrival:
            found = found.sort_by(ARRIVED).drop_columns([ARRIVED])
        if self.reorders:
            order = list(range(found.num_rows))
            rng.shuffle(order)
            found = found.take(pa.array(order, pa.int64()))
        return found


def decided(case: Case) -> Decision:
    """Plan the query of a case. Raise ``InvalidInputError`` as the streaming INSERT would."""
    tree = QueryTree(case)
    reorders = _has_exchange(tree.node)
    tells_arrival = not reorders and any(isinstance(each, Join) for each in _nodes(tree.node))
    if tells_arrival:
        query = replace(case.query, carried=(*case.query.carried, ARRIVED))
        case = replace(case, query=query)
        tree = QueryTree(case)
    plan = plan_of(facts_of(tree.node), _sink_table(case, tree), carries_kind=True)
    plan, text = _rewritten(case, plan)
    return Decision(plan=plan, text=text, reorders=reorders, tells_arrival=tells_arrival)


def _rewritten(case: Case, plan: StreamPlan) -> tuple[StreamPlan, str]:
    """Return the plan, adjusted to the query, and the query with the requested kind and position columns.

    Equivalent to ``storage_lib.sql.query.changes_in_query`` on a Spark session; both parse the query's text.
    """
    text = case.query.streamed_text.replace(SOURCE, "src").replace(DIMENSION, "dim").replace(DETAILS, "details")
    query = read_query(SourceText(text=text), 0, len(text))
    wanted = [] if case.source.is_append_only or KIND in case.query.carried else [KIND]
    place = query.shape.projection_end
    changed = [each for each in query.tables if each.parts == ("src",)]
    is_carried = query.shape.is_rowwise and place is not None and changed[0].start in query.shape.outermost
    if wanted and not is_carried:
        message = "the query reads changes, and its rows would not tell insertions from deletions"
        raise InvalidInputError(message)
    if plan.carries_position and ROW_POSITION not in case.query.carried:
        if not is_carried and plan.needs_position:
            message = "a join may change the order of the changes"
            raise InvalidInputError(message)
        wanted += [ROW_POSITION] if is_carried else []
        plan = replace(plan, carries_position=is_carried)
    if not wanted:
        return plan, text
    projected = "".join(f", {changed[0].alias}.{name} AS {name}" for name in wanted)
    return plan, f"{text[:place]}{projected} {text[place:]}"


def _sink_table(case: Case, tree: QueryTree) -> SinkTable:
    sink = case.sink
    return SinkTable(
        name="sink",
        kind=_sink_kind(sink),
        columns=tree.columns,
        primary_keys=sink.primary_key,
        kind_column=KIND,
        takes_rows_before=sink.log == "all-input",
        looks_up=sink.consistency != "eventual",
    )


def _sink_kind(sink: Sink) -> SinkKind:
    if sink.is_append_only:
        return SinkKind.APPENDS
    if sink.aggregates:
        return SinkKind.AGGREGATES
    return SinkKind.NEWEST_WINS if sink.key else SinkKind.COUNTS


def _has_exchange(node: Node) -> bool:
    """Return whether Spark may shuffle or sort the rows: for a join, or for a condition with a subquery."""
    nodes = list(_nodes(node))
    values = [each.condition for each in nodes if isinstance(each, Filter)]
    values += [value for each in nodes if isinstance(each, Project) for value in each.columns.values()]
    joins = [each for each in nodes if isinstance(each, Join)]
    is_shuffled = any(not (each.broadcasts_left or each.broadcasts_right) for each in joins)
    return is_shuffled or any(value.tables for value in values)


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    if isinstance(node, Join):
        yield from _nodes(node.left)
        yield from _nodes(node.right)
    elif isinstance(node, Union):
        for child in node.children:
            yield from _nodes(child)
    elif isinstance(node, Filter | Project):
        yield from _nodes(node.child)
