"""Bring a materialized table to its query's answer at the newest snapshots of its sources, by an engine that can.

    positions in the newest snapshot ─▶ newest consistent snapshots of the sources ─▶ changes, or the whole query
    ─▶ rows that differ, with weights ─▶ one commit: rows and new positions

The commit is refused if the table has changed since its positions were read. If another refresher was faster, the next
attempt finds nothing to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from storage_lib.errors import CommitConflictError, CommitOutcomeUnknownError, LeaseLostError, SnapshotExpiredError
from storage_lib.file_store.commit_message import BATCH_COMMIT_IDENTIFIER
from storage_lib.io.environment import system_environment
from storage_lib.materialized.accumulators.accumulated_state import UnreadableStateError
from storage_lib.materialized.commit.refresh_commit import ATTEMPTS, RefreshCommit, commit_positions
from storage_lib.materialized.engine import Engine, RefreshRun, first_able
from storage_lib.materialized.plan.accumulated_plan import AccumulatedPlan, accumulated_plan
from storage_lib.materialized.plan.refresh_costs import COSTS
from storage_lib.materialized.plan.refresh_plan import RefreshPlan, query_of, refresh_plan
from storage_lib.materialized.plan.refresh_result import RefreshEngine, RefreshResult, RefreshWork
from storage_lib.materialized.sources.downstream_tables import tables_refreshed_first
from storage_lib.materialized.sources.kept_snapshots import keep_snapshots
from storage_lib.materialized.sources.source_tables import bound_query, definition_of, needed_columns
from storage_lib.schema.options.materialized_table import RefreshStatus
from storage_lib.table.input.partition_spec import PartitionSpecs

if TYPE_CHECKING:
    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.materialized.accumulators.accumulated_query import AccumulatedQuery
    from storage_lib.materialized.sources.source_tables import BoundQuery
    from storage_lib.schema.options.materialized_table import MaterializedTableDefinition
    from storage_lib.table.dynamic_table import DynamicTable


def refresh_table(
    engines: Sequence[Engine],
    table: DynamicTable,
    *,
    partition: Mapping[str, object] | None = None,
    full: bool = False,
    commit_user: str | None = None,
) -> RefreshResult:
    """Refresh a table by the first of ``engines`` that can compute its rows; the last one compacts after the commit.

    ``partition``, ``full`` and ``commit_user`` as for ``storage_lib.spark.refresh``, which also says what is refreshed
    first. Raises as it does, and ``EngineRefusalError``, with nothing of this table written, if no engine computes the
    rows.
    """
    clock = system_environment().clock
    started = clock.monotonic()
    table = table.refresh()
    bound, first = _bound(table), {}
    for each in tables_refreshed_first(table, bound.tables):
        begun = clock.monotonic()
        _, done = _refreshed(engines, each, _bound(each), full=False, commit_user=None)
        if done.mode is not RefreshWork.NONE:
            first[each.name] = replace(done, seconds=clock.monotonic() - begun)
    bound, result = _refreshed(engines, table, _bound(table) if first else bound, full=full, commit_user=commit_user)
    if partition is not None and result.mode is not RefreshWork.FULL:
        result = _recompute_partition(engines, table.refresh(), bound, result, partition)
    return replace(result, seconds=clock.monotonic() - started, refreshed_first=first)


def idle_refresh(table: DynamicTable) -> RefreshResult | None:
    """Return the result of a refresh that would compute no rows; None if it would compute some.

    Saves a scheduler the start of an engine. Raises ``InvalidInputError`` for a table that is not materialized and for
    a query that no longer fits its sources, ``NotFoundError`` for a source that was dropped.
    """
    newest = table.refresh()
    bound = _bound(newest)
    first = tables_refreshed_first(newest, bound.tables)
    plans = [refresh_plan(each, definition_of(each), _bound(each), full=False) for each in first]
    plans.append(refresh_plan(newest, definition_of(newest), bound, full=False))
    return _nothing_done(plans[-1]) if all(plan.work is RefreshWork.NONE for plan in plans) else None


def _bound(table: DynamicTable) -> BoundQuery:
    return bound_query(table.address, definition_of(table))


def _refreshed(
    engines: Sequence[Engine],
    table: DynamicTable,
    bound: BoundQuery,
    *,
    full: bool,
    commit_user: str | None,
) -> tuple[BoundQuery, RefreshResult]:
    """Refresh one table, of which ``bound`` is the query."""
    clock = system_environment().clock
    definition = definition_of(table)
    why = ""
    for attempt in range(1, ATTEMPTS + 1):
        begun = clock.monotonic()
        try:
            if attempt > 1:
                bound = bound_query(table.address, definition)
            plan = refresh_plan(table, definition, bound, full=full, why=why)
            plan, accumulated = _with_accumulators(engines, table, definition, bound, plan)
            if plan.work is RefreshWork.NONE and attempt > 1:
                plan = replace(plan, reason="another refresh has made the table current")
            result = _run(engines, table, bound, plan, accumulated, _identity(commit_user, attempt))
            _record(table, definition, result, clock.monotonic() - begun)
            break
        except (CommitConflictError, LeaseLostError, CommitOutcomeUnknownError):
            # If the commit exists after all, the next plan finds nothing to do.
            if attempt == ATTEMPTS:
                raise
            table = table.refresh()
            definition = definition_of(table)
        except SnapshotExpiredError as error:
            if attempt == ATTEMPTS:
                raise
            full, why = True, f"a snapshot expired during the refresh: {error}"
        except UnreadableStateError as error:
            if attempt == ATTEMPTS:
                raise
            full, why = True, str(error)
    return bound, result


def _with_accumulators(
    engines: Sequence[Engine],
    table: DynamicTable,
    definition: MaterializedTableDefinition,
    bound: BoundQuery,
    plan: RefreshPlan,
) -> tuple[RefreshPlan, AccumulatedPlan | None]:
    def query() -> AccumulatedQuery | str | None:
        return first_able(table.name, engines, lambda engine: engine.accumulated_query(bound))[1]

    return accumulated_plan(query, table, definition, bound, plan)


def _record(
    table: DynamicTable, definition: MaterializedTableDefinition, result: RefreshResult, seconds: float
) -> None:
    """Remember what a refresh took that computed rows."""
    rows = sum(result.rows_read.values())
    if result.mode is not RefreshWork.NONE and rows:
        COSTS.record(query_of(table, definition), result.mode, rows, seconds)


def _run(
    engines: Sequence[Engine],
    table: DynamicTable,
    bound: BoundQuery,
    plan: RefreshPlan,
    accumulated: AccumulatedPlan | None,
    identity: tuple[str, int],
) -> RefreshResult:
    if plan.work is RefreshWork.NONE:
        return _nothing_done(plan)
    commit = RefreshCommit(
        user=identity[0],
        identifier=identity[1],
        based_on=plan.based_on,
        sources=plan.ranges,
        watermark=plan.watermark,
    )
    run = RefreshRun(table=table, bound=bound, plan=plan, commit=commit)
    compute = _applied if plan.work is RefreshWork.INCREMENTAL else _whole
    rows_read, engine, snapshot = compute(engines, run, accumulated)
    if table.definition is not None and table.definition.status is RefreshStatus.ACTIVATED and plan.keeps_snapshots:
        keep_snapshots(table, bound.tables, plan.after)
    if snapshot is not None and not table.options.write_only:
        engines[-1].compact(table)
    return RefreshResult(
        mode=plan.work,
        reason=plan.reason,
        rows_read=rows_read,
        rows_written=0 if snapshot is None else snapshot.delta_record_count,
        snapshot_id=None if snapshot is None else snapshot.id,
        engine=engine,
        positions=plan.after,
    )


_Outcome = tuple[Mapping[str, int], "RefreshEngine | None", "Snapshot | None"]
"""Rows that were read, by source; the engine, None if none was needed; and the commit, None without one."""


def _applied(engines: Sequence[Engine], run: RefreshRun, accumulated: AccumulatedPlan | None) -> _Outcome:
    """Apply the changes of the sources to the table in one commit."""
    plan, sources = run.plan, run.bound.sources
    deltas = {
        name: source.delta(needed_columns(run.bound.compiled, name, source), plan.before[name], plan.after[name])
        for name, source in sources.items()
        if plan.before[name] != plan.after[name]
    }
    rows_read = {name: deltas[name].row_count if name in deltas else 0 for name in sources}
    changed = {name: delta for name, delta in deltas.items() if delta.row_count}
    if not changed:
        unchanged = run.commit if accumulated is None else accumulated.unchanged(run.commit)
        return rows_read, None, commit_positions(run.table, unchanged)
    engine, snapshot = first_able(
        run.table.name, engines, lambda engine: engine.apply_changes(run, changed, accumulated)
    )
    return rows_read, engine.kind, snapshot


def _whole(engines: Sequence[Engine], run: RefreshRun, accumulated: AccumulatedPlan | None) -> _Outcome:
    """Write the rows of the whole answer that differ from the table's."""
    engine, snapshot = first_able(run.table.name, engines, lambda engine: engine.write_answer(run, accumulated))
    rows_read = {name: source.row_count(run.plan.after[name]) for name, source in run.bound.sources.items()}
    return rows_read, engine.kind, snapshot


def _identity(commit_user: str | None, attempt: int) -> tuple[str, int]:
    """Return user and identifier of an attempt's commit; nobody looks for a commit without a given user."""
    if commit_user is None:
        return f"refresh-{system_environment().new_name()}", BATCH_COMMIT_IDENTIFIER
    return commit_user, attempt


def _nothing_done(plan: RefreshPlan) -> RefreshResult:
    return RefreshResult(mode=plan.work, reason=plan.reason, positions=plan.after)


def _recompute_partition(
    engines: Sequence[Engine],
    table: DynamicTable,
    bound: BoundQuery,
    result: RefreshResult,
    partition: Mapping[str, object],
) -> RefreshResult:
    """Compute one partition of the answer in full, at the positions that the table has reached."""
    newest = table.inspect.latest_snapshot_id() or 0
    where = PartitionSpecs(table.name, table.schema).predicate_of_any([partition])
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
    run = RefreshRun(table=table, bound=bound, plan=plan, commit=commit)
    _, snapshot = first_able(table.name, engines, lambda engine: engine.write_answer(run, None, where))
    if snapshot is None:
        return result
    return replace(result, snapshot_id=snapshot.id, rows_written=result.rows_written + snapshot.delta_record_count)
