"""An incremental refresh: the changes of the sources, applied to the table in one commit."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from storage_lib.duckdb.not_in_process import NotInProcessError
from storage_lib.io.environment import system_environment
from storage_lib.materialized.algebra import RESULT, Moment
from storage_lib.spark.materialized.accumulated_refresh import Done, add_changes, add_changes_here
from storage_lib.spark.materialized.answer_columns import answer_rows
from storage_lib.spark.materialized.computed_once import computed_steps
from storage_lib.spark.materialized.in_process import in_process
from storage_lib.spark.materialized.refresh_commit import (
    RefreshCommit,
    Written,
    commit_difference,
    commit_difference_here,
    commit_positions,
)
from storage_lib.spark.materialized.refresh_plan import RefreshPlan, columns_of
from storage_lib.spark.materialized.refresh_result import RefreshEngine
from storage_lib.spark.materialized.source_delta import all_few, source_delta, source_rows
from storage_lib.spark.materialized.source_views import of_one_moment, shared_prefix, source_views
from storage_lib.spark.materialized.weighted_rows import net_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.materialized.algebra import Steps
    from storage_lib.spark.materialized.accumulated_plan import AccumulatedPlan
    from storage_lib.spark.materialized.source_delta import SourceDelta
    from storage_lib.spark.materialized.source_tables import BoundQuery
    from storage_lib.table.dynamic_table import DynamicTable

_LOGGER = logging.getLogger(__name__)


def apply_changes(
    spark: SparkSession | None,
    table: DynamicTable,
    bound: BoundQuery,
    plan: RefreshPlan,
    commit: RefreshCommit,
    accumulated: AccumulatedPlan | None,
) -> Written:
    """Apply the changes of the sources to the table, in this process if it can, and otherwise by Spark.

    Raises ``NotInProcessError``, with nothing written, where it needs a session and has none; otherwise as
    ``commit_difference``, ``UnreadableStateError``, and what Spark raises.
    """
    compiled, sources = bound.compiled, bound.sources
    columns = {name: columns_of(compiled, name, source) for name, source in sources.items()}
    deltas = {
        name: source_delta(source, columns[name], plan.before[name], plan.after[name])
        for name, source in sources.items()
        if plan.before[name] != plan.after[name]
    }
    changed = {name: delta for name, delta in deltas.items() if delta.row_count}
    rows_read = {name: deltas[name].row_count if name in deltas else 0 for name in sources}
    if not changed:
        unchanged = commit if accumulated is None else accumulated.unchanged(commit)
        return Written(commit_positions(table, unchanged), rows_read)

    try:
        done = _increment_here(spark, table, bound, plan, commit, accumulated, changed)
    except NotInProcessError as why:
        if spark is None:
            raise
        _LOGGER.debug("table %s: Spark computes its refresh: %s", table.name, why)
    else:
        return Written(done(), rows_read, RefreshEngine.DUCKDB)

    def frame_of(name: str, moment: Moment) -> DataFrame:
        if name == RESULT:
            return source_rows(spark, table, [field.name for field in table.schema.fields], plan.based_on)
        if moment is Moment.DELTA:
            return deltas[name].df(spark)
        at = plan.before if moment is Moment.BEFORE else plan.after
        return source_rows(spark, sources[name], columns[name], at[name])

    with source_views(spark, system_environment().new_name(), frame_of) as views:
        if accumulated is not None:
            snapshot = add_changes(spark, table, views, changed, commit, accumulated)
            return Written(snapshot, rows_read, RefreshEngine.SPARK)
        seen = of_one_moment(views, sources.keys() - changed.keys())
        steps = compiled.delta(seen, changed.keys(), are_few=all_few(changed), prefix=shared_prefix())
        return Written(_increment_by_spark(spark, table, steps, commit), rows_read, RefreshEngine.SPARK)


def _increment_by_spark(
    spark: SparkSession, table: DynamicTable, steps: Steps | None, commit: RefreshCommit
) -> Snapshot | None:
    if steps is None:
        return commit_positions(table, commit)
    with computed_steps(spark, steps) as rows:
        if rows is None:
            return commit_positions(table, commit)
        return commit_difference(net_rows(answer_rows(table, rows)), table, commit)


def _increment_here(
    spark: SparkSession | None,
    table: DynamicTable,
    bound: BoundQuery,
    plan: RefreshPlan,
    commit: RefreshCommit,
    accumulated: AccumulatedPlan | None,
    changed: Mapping[str, SourceDelta],
) -> Done:
    """Compute the change in this process, and return what commits it; ``NotInProcessError`` if Spark has to."""
    with in_process(spark, table, bound, plan, changed) as here:
        if accumulated is not None:
            return add_changes_here(table, here, commit, accumulated)
        rows = here.change()
    if rows is None:
        return lambda: commit_positions(table, commit)
    return lambda: commit_difference_here(rows, table, commit)
