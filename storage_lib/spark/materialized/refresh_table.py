"""``refresh``: bring a materialized table to its query's answer at the newest snapshots of its sources.

    positions in the newest snapshot ─▶ newest consistent snapshots of the sources ─▶ changes, or the whole query
    ─▶ rows that differ, with weights ─▶ one commit: rows and new positions

The commit is refused if the table has changed since its positions were read. If another refresher was faster, the next
attempt finds nothing to do.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from storage_lib.duckdb.not_in_process import NotInProcessError
from storage_lib.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    InvalidInputError,
    LeaseLostError,
    SnapshotExpiredError,
)
from storage_lib.io.environment import system_environment
from storage_lib.schema.options.materialized_table import RefreshStatus
from storage_lib.spark.compaction.distributed_compaction import compact_after_write
from storage_lib.spark.data_source.table_source import register
from storage_lib.spark.materialized.accumulated_plan import AccumulatedPlan, accumulated_plan
from storage_lib.spark.materialized.accumulated_state import UnreadableStateError
from storage_lib.spark.materialized.answer_columns import refusals_of_spark
from storage_lib.spark.materialized.apply_changes import apply_changes
from storage_lib.spark.materialized.kept_snapshots import keep_snapshots
from storage_lib.spark.materialized.refresh_commit import RefreshCommit
from storage_lib.spark.materialized.refresh_costs import COSTS
from storage_lib.spark.materialized.refresh_plan import RefreshPlan, query_of, refresh_plan
from storage_lib.spark.materialized.refresh_result import RefreshResult, RefreshWork
from storage_lib.spark.materialized.source_tables import bound_query
from storage_lib.spark.materialized.whole_answer import rebuild_state, write_whole
from storage_lib.spark.reading.united_frames import leave_out_unsafe_rule
from storage_lib.spark.tasks.active_session import active_session
from storage_lib.spark.types.predicate_column import column_of
from storage_lib.table.input.partition_spec import PartitionSpecs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.schema.options.materialized_table import MaterializedTableDefinition
    from storage_lib.spark.materialized.source_tables import BoundQuery
    from storage_lib.table.dynamic_table import DynamicTable

_LOGGER = logging.getLogger(__name__)
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
    started = system_environment().clock.monotonic()
    register(spark)
    leave_out_unsafe_rule(spark)
    bound, result = _refreshed(spark, table, full=full)
    if partition is not None and result.mode is not RefreshWork.FULL:
        result = _recompute_partition(spark, table.refresh(), bound, result, partition)
    return replace(result, seconds=system_environment().clock.monotonic() - started)


def refresh_here(table: DynamicTable, *, full: bool = False) -> RefreshResult | None:
    """Refresh a table as ``refresh`` does, without a session of Spark, whose start takes longer than small refreshes.

    None, with nothing written, if Spark has to compute rows. The caller knows that a session would have no setting by
    which expressions have other values (``unusual_configuration``). Raises as ``refresh``.
    """
    started = system_environment().clock.monotonic()
    try:
        _, result = _refreshed(None, table, full=full)
    except NotInProcessError as why:
        _LOGGER.info("table %s: Spark computes its refresh: %s", table.name, why)
        return None
    return replace(result, seconds=system_environment().clock.monotonic() - started)


def _refreshed(spark: SparkSession | None, table: DynamicTable, *, full: bool) -> tuple[BoundQuery, RefreshResult]:
    """Refresh a table. Raises ``NotInProcessError``, with nothing written, where it needs a session and has none."""
    clock = system_environment().clock
    table = table.refresh()
    definition = definition_of(table)
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
    return bound, result


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
    spark: SparkSession | None,
    table: DynamicTable,
    bound: BoundQuery,
    plan: RefreshPlan,
    accumulated: AccumulatedPlan | None,
) -> RefreshResult:
    if plan.work is RefreshWork.NONE:
        return RefreshResult(mode=plan.work, reason=plan.reason, positions=plan.after)
    commit = RefreshCommit(
        user=f"refresh-{system_environment().new_name()}",
        based_on=plan.based_on,
        sources=plan.ranges,
        watermark=plan.watermark,
    )
    with nullcontext() if spark is None else active_session(spark), refusals_of_spark(table.name):
        if plan.work is RefreshWork.INCREMENTAL:
            written = apply_changes(spark, table, bound, plan, commit, accumulated)
        elif accumulated is not None and spark is not None:
            written = rebuild_state(spark, table, bound, plan, commit, accumulated)
        else:
            written = write_whole(spark, table, bound, plan, commit)
    snapshot = written.snapshot
    if table.definition is not None and table.definition.status is RefreshStatus.ACTIVATED and plan.keeps_snapshots:
        keep_snapshots(table, bound.sources, plan.after)
    if snapshot is not None and not table.options.write_only:
        compact_after_write(spark, table)
    return RefreshResult(
        mode=plan.work,
        reason=plan.reason,
        rows_read=written.rows_read,
        rows_written=0 if snapshot is None else snapshot.delta_record_count,
        snapshot_id=None if snapshot is None else snapshot.id,
        engine=written.engine,
        positions=plan.after,
    )


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
        snapshot = write_whole(spark, table, bound, plan, commit, of_partition).snapshot
    if snapshot is None:
        return result
    return replace(result, snapshot_id=snapshot.id, rows_written=result.rows_written + snapshot.delta_record_count)
