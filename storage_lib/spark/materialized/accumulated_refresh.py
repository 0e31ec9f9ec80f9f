"""Refresh by accumulators: commit their state, then the rows of the answer that differ, with the state's snapshot."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import functions as sql

from storage_lib.errors import (
    CommitOutcomeUnknownError,
    CorruptFileError,
    NotFoundError,
    SnapshotExpiredError,
    StorageError,
)
from storage_lib.io.environment import system_environment
from storage_lib.spark.materialized.accumulated_state import (
    NamedState,
    base_of,
    commit_state,
    drop_other_states,
    drop_state,
    new_state,
)
from storage_lib.spark.materialized.answer_columns import answer_rows
from storage_lib.spark.materialized.kept_snapshots import keep_snapshots
from storage_lib.spark.materialized.refresh_commit import commit_difference, commit_positions
from storage_lib.spark.materialized.source_delta import source_rows
from storage_lib.spark.materialized.weighted_rows import net_rows, weighted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.incremental import Views
    from storage_lib.spark.materialized.accumulated_plan import AccumulatedPlan
    from storage_lib.spark.materialized.refresh_commit import RefreshCommit
    from storage_lib.table.dynamic_table import DynamicTable

_LOGGER = logging.getLogger(__name__)
_SNAPSHOTS_KEPT = 20
_SNAPSHOTS_MOST = 40


class UnreadableStateError(CorruptFileError):
    """The state of the accumulators can't be read, so that the refresh has to rebuild it."""


def add_changes(
    spark: SparkSession,
    table: DynamicTable,
    views: Views,
    changed: Collection[str],
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
    statement = query.accumulators.change(views, changed, query.types)
    if statement is None:
        return commit_positions(table, plan.unchanged(commit))
    with _stored_once(query.stored(spark.sql(statement))) as change:
        if change.count() == 0:
            return commit_positions(table, plan.unchanged(commit))
        with _readable():
            stored = source_rows(spark, state.table, query.state.fieldNames(), state.snapshot_id)
            base = base_of(state)
        touched = stored.join(sql.broadcast(change.select(*query.primary_key)), list(query.primary_key), "left_semi")
        with _stored_once(touched.select(*query.state.fieldNames())) as old:
            with _readable():
                old.count()
            with (
                _view(query.restored(old)) as old_view,
                _view(query.restored(change)) as change_view,
                _stored_once(spark.sql(query.accumulators.sum_of_states([old_view, change_view], query.types))) as new,
                _view(new) as new_view,
            ):
                reached = commit_state(new, state.table, query, base)
                rows = answer_rows(table, spark.sql(query.accumulators.answer_change(old_view, new_view, query.types)))
                snapshot = commit_difference(net_rows(rows), table, plan.naming(commit, reached))
    _tidy(table, reached)
    return snapshot


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
def _stored_once(df: DataFrame) -> Iterator[DataFrame]:
    kept = df.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield kept
    finally:
        kept.unpersist()


@contextmanager
def _view(df: DataFrame) -> Iterator[str]:
    name = f"accumulators_{system_environment().new_name().replace('-', '_')}"
    df.createOrReplaceTempView(name)
    try:
        yield name
    finally:
        df.sparkSession.catalog.dropTempView(name)


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except (CorruptFileError, NotFoundError, SnapshotExpiredError, PySparkException, Py4JJavaError) as error:
        cause = error.java_exception if isinstance(error, Py4JJavaError) else error
        message = f"the accumulators can't be read: {str(cause).splitlines()[0]}"
        raise UnreadableStateError(message) from error


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
