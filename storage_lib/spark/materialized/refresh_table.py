"""``refresh``: bring a materialized table to its query's answer at the newest snapshots of its sources.

    positions in the newest snapshot ─▶ newest consistent snapshots of the sources ─▶ changes, or the whole query
    ─▶ rows that differ, with weights ─▶ one commit: rows and new positions

The commit is refused if the table has changed since its positions were read. If another refresher was faster, the next
attempt finds nothing to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from storage_lib.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    InvalidInputError,
    LeaseLostError,
    SnapshotExpiredError,
)
from storage_lib.incremental import RESULT, Moment
from storage_lib.io.environment import system_environment
from storage_lib.schema.options.materialized_table import RefreshStatus
from storage_lib.spark.maintenance.distributed_compaction import compact_after_write
from storage_lib.spark.materialized.accumulated_plan import AccumulatedPlan, accumulated_plan
from storage_lib.spark.materialized.accumulated_refresh import UnreadableStateError, add_changes, build_state
from storage_lib.spark.materialized.answer_columns import answer_rows, refusals_of_spark
from storage_lib.spark.materialized.computed_once import computed_steps
from storage_lib.spark.materialized.kept_snapshots import keep_snapshots
from storage_lib.spark.materialized.refresh_commit import RefreshCommit, commit_difference, commit_positions
from storage_lib.spark.materialized.refresh_costs import COSTS
from storage_lib.spark.materialized.refresh_plan import RefreshPlan, columns_of, query_of, refresh_plan
from storage_lib.spark.materialized.refresh_result import RefreshResult, RefreshWork
from storage_lib.spark.materialized.source_delta import all_few, source_delta, source_rows, stored_rows
from storage_lib.spark.materialized.source_tables import bound_query
from storage_lib.spark.materialized.source_views import of_one_moment, shared_prefix, source_views
from storage_lib.spark.materialized.weighted_rows import net_rows, weighted
from storage_lib.spark.native.united_frames import leave_out_unsafe_rule
from storage_lib.spark.source.table_source import register
from storage_lib.spark.tasks.active_session import active_session
from storage_lib.spark.translation.predicate_column import column_of
from storage_lib.table.input.partition_spec import PartitionSpecs

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.schema.options.materialized_table import MaterializedTableDefinition
    from storage_lib.spark.materialized.source_tables import BoundQuery
    from storage_lib.table.dynamic_table import DynamicTable

_ATTEMPTS = 3


def refresh(
    spark: SparkSession, table: DynamicTable, *, partition: Mapping[str, object] | None = None, full: bool = False
) -> RefreshResult:
    """Make a materialized table equal to its query's answer at the newest snapshots of its sources.

    Only rows that differ are written, in one commit that also stores the sources' snapshots. If no source has changed,
    nothing is committed. The changes of the sources are applied incrementally if that is possible; ``full`` computes
    the whole query instead. ``partition`` also computes that partition of the answer in full, as a second commit.

    A suspended table is refreshed as well. If another process refreshes the table at the same time, one of them
    commits, and the other reports that the table is current.

    Raises ``InvalidInputError``, with nothing written, for a table that is not materialized, a query that no longer
    fits its sources, and an answer that violates the primary key; ``NotFoundError`` for a source that was dropped;
    otherwise as ``DynamicTable.append``.
    """
    clock = system_environment().clock
    started = clock.monotonic()
    table = table.refresh()
    definition = definition_of(table)
    register(spark)
    leave_out_unsafe_rule(spark)
    why = ""
    for attempt in range(1, _ATTEMPTS + 1):
        begun = clock.monotonic()
        try:
            bound = bound_query(table.address, definition)
            plan = refresh_plan(table, definition, bound, full=full, why=why)
            plan, accumulated = accumulated_plan(spark, table, definition, bound, plan)
            if plan.work is RefreshWork.NONE and attempt > 1:
                plan = replace(plan, reason="another refresh has made the table current")
            result = _run(spark, table, bound, plan, accumulated)
            _record(table, definition, result, clock.monotonic() - begun)
            break
        except (CommitConflictError, LeaseLostError, CommitOutcomeUnknownError):
            # If the commit exists after all, the next plan finds nothing to do.
            if attempt == _ATTEMPTS:
                raise
            table = table.refresh()
            definition = definition_of(table)
        except SnapshotExpiredError as error:
            if attempt == _ATTEMPTS:
                raise
            full, why = True, f"a snapshot expired during the refresh: {error}"
        except UnreadableStateError as error:
            if attempt == _ATTEMPTS:
                raise
            full, why = True, str(error)
    if partition is not None and result.mode is not RefreshWork.FULL:
        result = _recompute_partition(spark, table.refresh(), bound, result, partition)
    return replace(result, seconds=clock.monotonic() - started)


def _record(
    table: DynamicTable, definition: MaterializedTableDefinition, result: RefreshResult, seconds: float
) -> None:
    """Remember what a refresh took that computed rows."""
    rows = sum(result.rows_read.values())
    if result.mode is not RefreshWork.NONE and rows:
        COSTS.record(query_of(table, definition), result.mode, rows, seconds)


def definition_of(table: DynamicTable) -> MaterializedTableDefinition:
    """Return the table's query; ``InvalidInputError`` for an ordinary table."""
    definition = table.definition
    if definition is None:
        message = (
            f"table {table.name} is not a materialized table; create one with create_materialized_table or "
            "CREATE MATERIALIZED TABLE"
        )
        raise InvalidInputError(message)
    return definition


def _run(
    spark: SparkSession, table: DynamicTable, bound: BoundQuery, plan: RefreshPlan, accumulated: AccumulatedPlan | None
) -> RefreshResult:
    if plan.work is RefreshWork.NONE:
        return RefreshResult(mode=plan.work, reason=plan.reason, positions=plan.after)
    commit = RefreshCommit(
        user=f"refresh-{system_environment().new_name()}",
        based_on=plan.based_on,
        sources=plan.ranges,
        watermark=plan.watermark,
    )
    with active_session(spark), refusals_of_spark(table.name):
        if plan.work is RefreshWork.INCREMENTAL:
            snapshot, rows_read = _increment(spark, table, bound, plan, commit, accumulated)
        elif accumulated is not None:
            snapshot, rows_read = _rebuilt(spark, table, bound, plan, commit, accumulated)
        else:
            snapshot, rows_read = _whole(spark, table, bound, plan, commit)
    if table.definition is not None and table.definition.status is RefreshStatus.ACTIVATED and plan.keeps_snapshots:
        keep_snapshots(table, bound.sources, plan.after)
    if snapshot is not None and not table.options.write_only:
        compact_after_write(spark, table)
    return RefreshResult(
        mode=plan.work,
        reason=plan.reason,
        rows_read=rows_read,
        rows_written=0 if snapshot is None else snapshot.delta_record_count,
        snapshot_id=None if snapshot is None else snapshot.id,
        positions=plan.after,
    )


_Done = tuple["Snapshot | None", Mapping[str, int]]
"""The snapshot of a commit, and the number of rows read by source."""


def _increment(
    spark: SparkSession,
    table: DynamicTable,
    bound: BoundQuery,
    plan: RefreshPlan,
    commit: RefreshCommit,
    accumulated: AccumulatedPlan | None,
) -> _Done:
    """Apply the changes of the sources to the table."""
    compiled, sources = bound.compiled, bound.sources
    columns = {name: columns_of(compiled, name, source) for name, source in sources.items()}
    deltas = {
        name: source_delta(spark, source, columns[name], plan.before[name], plan.after[name])
        for name, source in sources.items()
        if plan.before[name] != plan.after[name]
    }
    changed = {name: delta for name, delta in deltas.items() if delta.row_count}
    rows_read = {name: deltas[name].row_count if name in deltas else 0 for name in sources}
    if not changed:
        unchanged = commit if accumulated is None else accumulated.unchanged(commit)
        return commit_positions(table, unchanged), rows_read

    def frame_of(name: str, moment: Moment) -> DataFrame:
        if name == RESULT:
            return source_rows(spark, table, [field.name for field in table.schema.fields], plan.based_on)
        if moment is Moment.DELTA:
            return deltas[name].df
        at = plan.before if moment is Moment.BEFORE else plan.after
        return source_rows(spark, sources[name], columns[name], at[name])

    with source_views(spark, system_environment().new_name(), frame_of) as views:
        if accumulated is not None:
            return add_changes(spark, table, views, changed, commit, accumulated), rows_read
        seen = of_one_moment(views, sources.keys() - changed.keys())
        steps = compiled.delta(seen, changed.keys(), are_few=all_few(changed), prefix=shared_prefix())
        if steps is None:
            return commit_positions(table, commit), rows_read
        with computed_steps(spark, steps) as rows:
            return commit_difference(net_rows(answer_rows(table, rows)), table, commit), rows_read


def _whole(
    spark: SparkSession,
    table: DynamicTable,
    bound: BoundQuery,
    plan: RefreshPlan,
    commit: RefreshCommit,
    where: Column | None = None,
) -> _Done:
    """Write the difference between the table and the whole answer, of the rows ``where`` only."""
    compiled, sources = bound.compiled, bound.sources

    def frame_of(name: str, _: Moment) -> DataFrame:
        return source_rows(spark, sources[name], columns_of(compiled, name, sources[name]), plan.after[name])

    with source_views(spark, system_environment().new_name(), frame_of) as views:
        answer = weighted(spark.sql(compiled.full(views, Moment.AFTER)), 1)
        rows = answer_rows(table, answer)
        if plan.based_on:
            stored = source_rows(spark, table, [field.name for field in table.schema.fields], plan.based_on)
            rows = rows.union(weighted(stored, -1))
        rows = net_rows(rows if where is None else rows.where(where))
        snapshot = commit_difference(rows, table, commit)
    return snapshot, {name: stored_rows(source, plan.after[name]) for name, source in sources.items()}


def _rebuilt(
    spark: SparkSession,
    table: DynamicTable,
    bound: BoundQuery,
    plan: RefreshPlan,
    commit: RefreshCommit,
    accumulated: AccumulatedPlan,
) -> _Done:
    """Compute the state of the accumulators in full, and write the difference between the table and their answer."""
    compiled, sources = bound.compiled, bound.sources

    def frame_of(name: str, _: Moment) -> DataFrame:
        return source_rows(spark, sources[name], columns_of(compiled, name, sources[name]), plan.after[name])

    with source_views(spark, system_environment().new_name(), frame_of) as views:
        snapshot = build_state(spark, table, views, commit, accumulated)
    return snapshot, {name: stored_rows(source, plan.after[name]) for name, source in sources.items()}


def _recompute_partition(
    spark: SparkSession,
    table: DynamicTable,
    bound: BoundQuery,
    result: RefreshResult,
    partition: Mapping[str, object],
) -> RefreshResult:
    """Compute one partition of the answer in full, at the positions that the table has reached."""
    newest = table.inspect.latest_snapshot_id() or 0
    predicate = PartitionSpecs(table.name, table.schema).predicate_of_any([partition])
    of_partition = None if predicate is None else column_of(predicate, table.schema)
    plan = RefreshPlan(
        work=RefreshWork.FULL,
        reason="a partition",
        based_on=newest,
        before={},
        after=result.positions,
        ranges=(),
        watermark=None,
    )
    commit = RefreshCommit(user=f"refresh-{system_environment().new_name()}", based_on=newest, sources=())
    with active_session(spark), refusals_of_spark(table.name):
        snapshot, _ = _whole(spark, table, bound, plan, commit, of_partition)
    if snapshot is None:
        return result
    return replace(result, snapshot_id=snapshot.id, rows_written=result.rows_written + snapshot.delta_record_count)
