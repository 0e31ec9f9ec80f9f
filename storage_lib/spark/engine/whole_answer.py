"""A full refresh by Spark: the whole answer, of which only the rows that differ from the table's are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.io.environment import system_environment
from storage_lib.materialized.algebra import Moment
from storage_lib.materialized.sources.source_tables import needed_columns
from storage_lib.spark.engine.accumulated_refresh import build_state
from storage_lib.spark.engine.answer_columns import answer_rows
from storage_lib.spark.engine.commit_difference import commit_difference_of
from storage_lib.spark.engine.source_frames import rows_of_source, source_rows
from storage_lib.spark.engine.source_views import source_views
from storage_lib.spark.engine.weighted_frames import net_rows, weighted
from storage_lib.spark.types.predicate_column import column_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.materialized.algebra import Views
    from storage_lib.materialized.engine import RefreshRun
    from storage_lib.materialized.plan.accumulated_plan import AccumulatedPlan
    from storage_lib.schema.filter.predicate import Predicate


def write_answer(
    spark: SparkSession, run: RefreshRun, accumulated: AccumulatedPlan | None, where: Predicate | None
) -> Snapshot | None:
    """See ``Engine.write_answer``."""
    table = run.table
    with _newest(spark, run) as views:
        if accumulated is not None:
            return build_state(spark, table, views, run.commit, accumulated)
        answer = weighted(spark.sql(run.bound.compiled.full(views, Moment.AFTER)), 1)
        rows = answer_rows(table, answer)
        if run.plan.based_on:
            stored = source_rows(spark, table, [field.name for field in table.schema.fields], run.plan.based_on)
            rows = rows.union(weighted(stored, -1))
        rows = net_rows(rows if where is None else rows.where(column_of(where, table.schema)))
        return commit_difference_of(rows, table, run.commit)


def _newest(spark: SparkSession, run: RefreshRun) -> AbstractContextManager[Views]:
    """Return views of the sources at the snapshots that the refresh brings the table to."""

    def frame_of(name: str, _: Moment) -> DataFrame:
        source = run.bound.sources[name]
        return rows_of_source(spark, source, needed_columns(run.bound.compiled, name, source), run.plan.after[name])

    return source_views(spark, system_environment().new_name(), frame_of)
