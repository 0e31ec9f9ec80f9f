"""Refresh by accumulators: commit their state, then the rows of the answer that differ, with the state's snapshot."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from storage_lib.errors import (
    CommitOutcomeUnknownError,
    StorageError,
)
from storage_lib.io.environment import system_environment
from storage_lib.spark.materialized.accumulated_in_process import LOOKED_UP_MAX, accumulated_change
from storage_lib.spark.materialized.accumulated_state import (
    NamedState,
    base_of,
    commit_state,
    commit_state_here,
    drop_other_states,
    drop_state,
    looked_up,
    new_state,
    readable_state,
)
from storage_lib.spark.materialized.answer_columns import answer_rows
from storage_lib.spark.materialized.computed_once import ComputedOnce, computed_once, computed_steps, frame_here
from storage_lib.spark.materialized.kept_snapshots import keep_snapshots
from storage_lib.spark.materialized.refresh_commit import (
    commit_difference,
    commit_difference_here,
    commit_positions,
)
from storage_lib.spark.materialized.source_delta import all_few, source_rows
from storage_lib.spark.materialized.source_views import shared_prefix
from storage_lib.spark.materialized.weighted_rows import net_rows, weighted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.materialized.algebra import Views
    from storage_lib.spark.materialized.accumulated_plan import AccumulatedPlan
    from storage_lib.spark.materialized.accumulated_query import AccumulatedQuery
    from storage_lib.spark.materialized.in_process import InProcess
    from storage_lib.spark.materialized.refresh_commit import RefreshCommit
    from storage_lib.spark.materialized.source_delta import SourceDelta
    from storage_lib.table.dynamic_table import DynamicTable

_LOGGER = logging.getLogger(__name__)
_SNAPSHOTS_KEPT = 20
_SNAPSHOTS_MOST = 40


Done = Callable[[], "Snapshot | None"]
"""Commits a change that is computed."""


def add_changes(
    spark: SparkSession,
    table: DynamicTable,
    views: Views,
    changed: Mapping[str, SourceDelta],
    commit: RefreshCommit,
    plan: AccumulatedPlan,
) -> Snapshot | None:
    """Add the changes of the sources to the state, and write the change of the answer.

    Raises ``UnreadableStateError`` for a damaged state, otherwise as ``commit_difference``.
    """
    query, state = plan.query, plan.state
    if state is None:
        message = "a refresh that adds changes needs a state"
        raise ValueError(message)
    steps = query.accumulators.change(
        views, changed.keys(), query.types, are_few=all_few(changed), prefix=shared_prefix()
    )
    if steps is None:
        return commit_positions(table, plan.unchanged(commit))
    with computed_steps(spark, steps) as added, _stored_once(query, added) as change:
        if change is None or change.row_count == 0:
            return commit_positions(table, plan.unchanged(commit))
        with readable_state():
            base = base_of(state)
        with (
            _touched(spark, query, state, change) as old_rows,
            _view(query.restored(old_rows)) as old_view,
            _view(query.restored(change.df)) as change_view,
            computed_once(spark.sql(query.accumulators.sum_of_states([old_view, change_view], query.types))) as new,
            _view(new.df) as new_view,
        ):
            are_few = new.here is not None
            reached = commit_state(new.df, state.table, query, base, are_few=are_few)
            rows = answer_rows(table, spark.sql(query.accumulators.answer_change(old_view, new_view, query.types)))
            named = plan.naming(commit, reached)
            snapshot = commit_difference(net_rows(rows), table, named, are_few=are_few)
    _tidy(table, reached)
    return snapshot


def add_changes_here(table: DynamicTable, here: InProcess, commit: RefreshCommit, plan: AccumulatedPlan) -> Done:
    """Do the same in this process: return what commits a change that is computed.

    Raises ``NotInProcessError`` or ``NotExactError`` if Spark has to compute it.
    """
    query, state = plan.query, plan.state
    if state is None:
        message = "a refresh that adds changes needs a state"
        raise ValueError(message)
    change = accumulated_change(here, query, state)
    if change is None:
        return lambda: commit_positions(table, plan.unchanged(commit))

    def done() -> Snapshot | None:
        with readable_state():
            base = base_of(state)
        reached = commit_state_here(change.state, state.table, base)
        snapshot = commit_difference_here(change.answer, table, plan.naming(commit, reached))
        _tidy(table, reached)
        return snapshot

    return done


@contextmanager
def _stored_once(query: AccumulatedQuery, added: DataFrame | None) -> Iterator[ComputedOnce | None]:
    if added is None:
        yield None
        return
    with computed_once(query.stored(added)) as change:
        yield change


@contextmanager
def _touched(
    spark: SparkSession, query: AccumulatedQuery, state: NamedState, change: ComputedOnce
) -> Iterator[DataFrame]:
    """Give the body the stored rows of the groups that change, which may turn out to be damaged before."""
    names = query.state.fieldNames()
    if change.here is not None and change.row_count <= LOOKED_UP_MAX:
        with readable_state():
            rows = looked_up(query, state, change.here)
        yield frame_here(spark, rows, query.state)
        return
    with ExitStack() as stack:
        with readable_state():
            stored = source_rows(spark, state.table, names, state.snapshot_id)
            keys = sql.broadcast(change.df.select(*query.primary_key))
            touched = stored.join(keys, list(query.primary_key), "left_semi").select(*names)
            old = stack.enter_context(computed_once(touched))
        yield old.df


def build_state(
    spark: SparkSession, table: DynamicTable, views: Views, commit: RefreshCommit, plan: AccumulatedPlan
) -> Snapshot | None:
    """Compute a new state, and write the difference between the table's rows and the answer of that state."""
    state = new_state(table, plan.query)
    try:
        return _answered(spark, table, views, commit, plan, state)
    except CommitOutcomeUnknownError:
        # The table may name the state.
        raise
    except BaseException:
        with suppress(StorageError):
            drop_state(state)
        raise


def _answered(
    spark: SparkSession,
    table: DynamicTable,
    views: Views,
    commit: RefreshCommit,
    plan: AccumulatedPlan,
    state: DynamicTable,
) -> Snapshot | None:
    query = plan.query
    reached = commit_state(spark.sql(query.accumulators.whole(views, query.types)), state, query, 0)
    stored = source_rows(spark, state, query.state.fieldNames(), reached.snapshot_id)
    with _view(query.restored(stored)) as view:
        answer = weighted(spark.sql(query.accumulators.answer(view, query.types)), 1)
        rows = answer_rows(table, answer)
        if commit.based_on:
            old = source_rows(spark, table, [field.name for field in table.schema.fields], commit.based_on)
            rows = rows.union(weighted(old, -1))
        snapshot = commit_difference(net_rows(rows), table, plan.naming(commit, reached))
    drop_other_states(table, plan.recorded, reached)
    _tidy(table, reached)
    return snapshot


@contextmanager
def _view(df: DataFrame) -> Iterator[str]:
    name = f"accumulators_{system_environment().new_name().replace('-', '_')}"
    df.createOrReplaceTempView(name)
    try:
        yield name
    finally:
        df.sparkSession.catalog.dropTempView(name)


def _tidy(table: DynamicTable, state: NamedState) -> None:
    """Keep the named snapshot from expiring, compact the state, and remove what it no longer needs."""
    if state.snapshot_id == 0:
        return
    try:
        _tidied(table, state)
    except StorageError as error:
        # The refresh is committed; the next one tries again.
        _LOGGER.warning("table %s: its accumulators could not be compacted: %s", table.name, error)


def _tidied(table: DynamicTable, state: NamedState) -> None:
    keep_snapshots(table, {state.table.name: state.table}, {state.table.name: state.snapshot_id})
    earliest = state.table.inspect.earliest_snapshot_id() or state.snapshot_id
    state.table.compact(full=False)
    if state.snapshot_id - earliest > _SNAPSHOTS_MOST:
        state.table.maintenance.expire_snapshots(retain_last=_SNAPSHOTS_KEPT)
        state.table.maintenance.remove_orphan_files()
