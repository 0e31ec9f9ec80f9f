"""An incremental refresh by Spark: the changes of the sources, applied to the table in one commit."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from storage_lib.io.environment import system_environment
from storage_lib.materialized.algebra import RESULT, Moment, of_one_moment
from storage_lib.materialized.commit.refresh_commit import commit_positions
from storage_lib.materialized.sources.source_delta import all_few
from storage_lib.materialized.sources.source_tables import needed_columns
from storage_lib.spark.engine.accumulated_refresh import add_changes
from storage_lib.spark.engine.answer_columns import answer_rows
from storage_lib.spark.engine.commit_difference import commit_difference_of
from storage_lib.spark.engine.computed_once import computed_steps
from storage_lib.spark.engine.source_frames import delta_frame, rows_of_source, source_rows
from storage_lib.spark.engine.source_views import shared_prefix, source_views
from storage_lib.spark.engine.weighted_frames import net_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.materialized.algebra import Views
    from storage_lib.materialized.engine import RefreshRun
    from storage_lib.materialized.plan.accumulated_plan import AccumulatedPlan
    from storage_lib.materialized.sources.source import SourceDelta


def apply_changes(
    spark: SparkSession, run: RefreshRun, changed: Mapping[str, SourceDelta], accumulated: AccumulatedPlan | None
) -> Snapshot | None:
    """See ``Engine.apply_changes``."""
    table, sources = run.table, run.bound.sources
    with _views(spark, run, changed) as views:
        if accumulated is not None:
            return add_changes(spark, table, views, changed, run.commit, accumulated)
        seen = of_one_moment(views, sources.keys() - changed.keys())
        steps = run.bound.compiled.delta(seen, changed.keys(), are_few=all_few(changed), prefix=shared_prefix())
        if steps is None:
            return commit_positions(table, run.commit)
        with computed_steps(spark, steps) as rows:
            if rows is None:
                return commit_positions(table, run.commit)
            return commit_difference_of(net_rows(answer_rows(table, rows)), table, run.commit)


@contextmanager
def _views(spark: SparkSession, run: RefreshRun, changed: Mapping[str, SourceDelta]) -> Iterator[Views]:
    """Give the body the relations of the table's rows, and of the sources before and after the refresh."""
    table, plan, compiled = run.table, run.plan, run.bound.compiled

    def frame_of(name: str, moment: Moment) -> DataFrame:
        if name == RESULT:
            return source_rows(spark, table, [field.name for field in table.schema.fields], plan.based_on)
        if moment is Moment.DELTA:
            return delta_frame(spark, changed[name])
        source = run.bound.sources[name]
        at = plan.before if moment is Moment.BEFORE else plan.after
        return rows_of_source(spark, source, needed_columns(compiled, name, source), at[name])

    with source_views(spark, system_environment().new_name(), frame_of) as views:
        yield views
