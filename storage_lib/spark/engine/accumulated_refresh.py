"""Refresh by accumulators in Spark: commit their state, then the rows of the answer that differ, with its snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from storage_lib.errors import CommitOutcomeUnknownError, StorageError
from storage_lib.io.environment import system_environment
from storage_lib.materialized.accumulators.accumulated_state import (
    LOOKED_UP_MAX,
    NamedState,
    base_of,
    drop_other_states,
    drop_state,
    looked_up,
    new_state,
)
from storage_lib.materialized.accumulators.tidy_state import tidy_state
from storage_lib.materialized.commit.refresh_commit import commit_positions
from storage_lib.materialized.sources.source_delta import all_few
from storage_lib.spark.engine.answer_columns import answer_rows
from storage_lib.spark.engine.commit_difference import commit_difference_of
from storage_lib.spark.engine.computed_once import ComputedOnce, computed_once, computed_steps, frame_here
from storage_lib.spark.engine.source_frames import source_rows
from storage_lib.spark.engine.source_views import shared_prefix
from storage_lib.spark.engine.state_frames import (
    commit_state_of,
    restored,
    state_readable_by_spark,
    stored,
    struct_of_state,
)
from storage_lib.spark.engine.weighted_frames import net_rows, weighted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.materialized.accumulators.accumulated_query import AccumulatedQuery
    from storage_lib.materialized.algebra import Views
    from storage_lib.materialized.commit.refresh_commit import RefreshCommit
    from storage_lib.materialized.plan.accumulated_plan import AccumulatedPlan
    from storage_lib.materialized.sources.source import SourceDelta
    from storage_lib.table.dynamic_table import DynamicTable


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
    query, state = plan.query, plan.needed_state()
    steps = query.accumulators.change(
        views, changed.keys(), query.types, are_few=all_few(changed), prefix=shared_prefix()
    )
    if steps is None:
        return commit_positions(table, plan.unchanged(commit))
    with computed_steps(spark, steps) as added, _stored_once(query, added) as change:
        if change is None or change.row_count == 0:
            return commit_positions(table, plan.unchanged(commit))
        with state_readable_by_spark():
            base = base_of(state)
        with (
            _touched(spark, query, state, change) as old_rows,
            _view(restored(query, old_rows)) as old_view,
            _view(restored(query, change.df)) as change_view,
            computed_once(spark.sql(query.accumulators.sum_of_states([old_view, change_view], query.types))) as new,
            _view(new.df) as new_view,
        ):
            are_few = new.here is not None
            reached = commit_state_of(new.df, state.table, query, base, are_few=are_few)
            rows = answer_rows(table, spark.sql(query.accumulators.answer_change(old_view, new_view, query.types)))
            named = plan.naming(commit, reached)
            snapshot = commit_difference_of(net_rows(rows), table, named, are_few=are_few)
    tidy_state(table, reached)
    return snapshot


@contextmanager
def _stored_once(query: AccumulatedQuery, added: DataFrame | None) -> Iterator[ComputedOnce | None]:
    if added is None:
        yield None
        return
    with computed_once(stored(query, added)) as change:
        yield change


@contextmanager
def _touched(
    spark: SparkSession, query: AccumulatedQuery, state: NamedState, change: ComputedOnce
) -> Iterator[DataFrame]:
    """Give the body the stored rows of the groups that change, which may turn out to be damaged before."""
    names = query.state.names
    if change.here is not None and change.row_count <= LOOKED_UP_MAX:
        with state_readable_by_spark():
            rows = looked_up(query, state, change.here)
        yield frame_here(spark, rows, struct_of_state(query))
        return
    with ExitStack() as stack:
        with state_readable_by_spark():
            rows_of_state = source_rows(spark, state.table, names, state.snapshot_id)
            keys = sql.broadcast(change.df.select(*query.primary_key))
            touched = rows_of_state.join(keys, list(query.primary_key), "left_semi").select(*names)
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
    reached = commit_state_of(spark.sql(query.accumulators.whole(views, query.types)), state, query, 0)
    rows_of_state = source_rows(spark, state, query.state.names, reached.snapshot_id)
    with _view(restored(query, rows_of_state)) as view:
        answer = weighted(spark.sql(query.accumulators.answer(view, query.types)), 1)
        rows = answer_rows(table, answer)
        if commit.based_on:
            old = source_rows(spark, table, [field.name for field in table.schema.fields], commit.based_on)
            rows = rows.union(weighted(old, -1))
        snapshot = commit_difference_of(net_rows(rows), table, plan.naming(commit, reached))
    drop_other_states(table, plan.recorded, reached)
    tidy_state(table, reached)
    return snapshot


@contextmanager
def _view(df: DataFrame) -> Iterator[str]:
    name = f"accumulators_{system_environment().new_name().replace('-', '_')}"
    df.createOrReplaceTempView(name)
    try:
        yield name
    finally:
        df.sparkSession.catalog.dropTempView(name)
