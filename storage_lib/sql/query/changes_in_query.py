"""Streaming queries over changes: their rows need a row kind, or a deletion would be written as an insertion.

Flink carries the row kind outside the columns; Spark only has columns. So the row kind is appended to a query that
computes each row from one change; any other query must not read changes, or must handle their kinds itself.
If the write needs it (``stream_plan``), the row position is appended as well, changes are read with their pre-images,
and other tables are read at one snapshot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from storage_lib.errors import InvalidInputError
from storage_lib.spark.stream.pinned_snapshots import pinned_snapshots
from storage_lib.spark.stream.plan.query_facts import QueryFacts
from storage_lib.spark.stream.plan.stream_plan import LOOKUP, STATE, StreamPlan
from storage_lib.spark.stream.plan.write_plan import plan_of_write, refuse_frozen
from storage_lib.spark.stream.sink.sink_spec import OUTPUT_MODES
from storage_lib.spark.types.spark_schema import ROW_POSITION
from storage_lib.sql.query.query_runner import Rewritten, names_of_changes, rewritten, sql_of
from storage_lib.sql.query.relations import StreamReads
from storage_lib.sql.state.session_state import SessionState
from storage_lib.sql.state.settings import RUNTIME_MODE
from storage_lib.sql.state.spark_words import errors_in_words
from storage_lib.sql.text.query_tables import Query, quoted
from storage_lib.sql.text.source_text import SourceText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage_lib.table.dynamic_table import DynamicTable


class LostChangesError(InvalidInputError):
    """Rows of a streaming query would not tell which changes of the result they are, or in which order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamQuery:
    """A query as a stream of rows for a table, with the plan of the write."""

    rows: DataFrame
    plan: StreamPlan = field(default_factory=StreamPlan)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTarget:
    """Target of a streaming query. ``rows_of`` converts the query's result to rows of the table.

    ``checkpoint`` None: the query is only explained.
    """

    table: DynamicTable
    rows_of: Callable[[DataFrame], DataFrame]
    output_mode: str
    change_tracking: bool | None
    checkpoint: str | None


def stream_query(state: SessionState, query: Query, source: SourceText, target: StreamTarget) -> StreamQuery:
    """Return the query as a stream with row kinds, if it reads changes, and anything else that the write needs.

    Raises ``LostChangesError`` for a query that would lose the row kinds or their order, and ``InvalidInputError`` for
    other queries with whose result the table could not be kept equal.
    """
    kind = target.table.options.row_kind_field
    with rewritten(state, query) as found:
        df = sql_of(state, found, source)
        has_kind = kind in df.columns
        changed = _changed_table(query, found)
        if found.changes and not has_kind and changed is None:
            raise _loses_kinds(found, target.output_mode)
        rows = target.rows_of(df)
        if df.isStreaming and target.output_mode in OUTPUT_MODES:
            with errors_in_words(source):
                _check_streamable(df, target.output_mode)
        if not df.isStreaming or target.output_mode == "complete":
            return StreamQuery(rows=rows)
        plan, facts = plan_of_write(
            rows, target.table, carries_kind=bool(found.changes), change_tracking=target.change_tracking
        )
    refuse_frozen(target.table, facts)
    reads = _reads_of(state, plan, facts, target)
    wanted = [] if has_kind or not found.changes else [(_kind_column(found), kind)]
    if not wanted and reads == StreamReads():
        return StreamQuery(rows=rows, plan=plan)
    if plan.carries_position and ROW_POSITION not in df.columns and changed is None:
        if plan.needs_position:
            raise _loses_position(plan, found)
        plan, reads = replace(plan, carries_position=False), replace(reads, has_position=False)
    # The query may select the position by ``*``; append it only if it does not.
    tries = ((), ((ROW_POSITION, ROW_POSITION),)) if reads.has_position else ((),)
    for more in tries:
        projected = _projected(changed, [*wanted, *more])
        with rewritten(state, query, projected=projected, reads=reads) as found:
            df = sql_of(state, found, source)
        if not reads.has_position or ROW_POSITION in df.columns:
            break
    return StreamQuery(rows=target.rows_of(df), plan=plan)


def _check_streamable(df: DataFrame, output_mode: str) -> None:
    """Let Spark refuse a query that it can't run as a stream, as it would at the start of the stream."""
    jvm: Any = df.sparkSession.sparkContext._jvm  # noqa: SLF001  pyspark has no public way to the check
    mode = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, output_mode.capitalize())()
    analyzed = df._jdf.queryExecution().analyzed()  # noqa: SLF001
    jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker.checkForStreaming(analyzed, mode)


def _reads_of(state: SessionState, plan: StreamPlan, facts: QueryFacts, target: StreamTarget) -> StreamReads:
    pinned = {}
    if plan.pins and facts.unpinned:
        catalog = state.catalog
        others = {name: catalog.load_table(name) for name in facts.unpinned}
        pinned = pinned_snapshots(state.spark, target.table, target.checkpoint, others)
    normalize = plan.normalize if plan.normalize in (LOOKUP, STATE) else None
    return StreamReads(
        normalize=normalize,
        state_directory=f"{(target.checkpoint or '').rstrip('/')}/dynamic-table-state" if normalize == STATE else None,
        has_position=plan.carries_position,
        whole_commits=plan.adds_up,
        pinned=pinned,
    )


def _projected(changed: str | None, columns: list[tuple[str, str]]) -> str | None:
    """Return text that appends columns of the changed table to a query's columns; None without such columns."""
    if changed is None or not columns:
        return None
    return "".join(f", {changed}.{quoted(column)} AS {quoted(name)}" for column, name in columns) + " "


def _kind_column(found: Rewritten) -> str:
    (relation,) = found.changes.values()
    return str(relation.row_kind_column)


def _changed_table(query: Query, found: Rewritten) -> str | None:
    """Return the name in the query of the only stream, if each row is computed from one row of it; else None."""
    if not query.shape.is_rowwise or query.shape.projection_end is None or len(found.streams) != 1:
        return None
    ((place, _),) = found.streams.items()
    if place not in query.shape.outermost:
        return None
    (reference,) = (each for each in query.tables if each.start == place)
    return quoted(reference.alias or reference.parts[-1])


def _loses_kinds(found: Rewritten, output_mode: str) -> LostChangesError:
    if output_mode in ("update", "complete"):
        message = (
            f"the query reads changes of {names_of_changes(list(found.changes.values()))} and works out results of "
            "several rows, which Spark would take for insertions, deleted and updated rows too. Read a table that "
            "only grows (write-mode=append-only), or count by hand: SUM(CASE WHEN _row_kind IN ('+I', '+U') THEN n "
            "ELSE -n END) over a stream with scan.normalize=lookup, with the column _row_kind named in the query"
        )
    else:
        message = (
            f"the query reads changes of {names_of_changes(list(found.changes.values()))}, and its rows would not "
            "tell insertions from deletions. Select the column "
            f"{next(iter(found.changes.values())).row_kind_column} as well, or read one snapshot of all tables but "
            f"one: hint OPTIONS('{RUNTIME_MODE}' = 'batch')"
        )
    return LostChangesError(message)


def _loses_position(plan: StreamPlan, found: Rewritten) -> LostChangesError:
    message = (
        f"the query reads changes of {names_of_changes(list(found.changes.values()))}, and {plan.position_reason} may "
        f"change their order. Select the column {ROW_POSITION} as well, wherever the row kind is selected, or join "
        "in the outermost SELECT, where it is carried along"
    )
    return LostChangesError(message)
