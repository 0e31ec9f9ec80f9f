"""A full refresh: the whole answer, of which only the rows that differ from the table's are written."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from storage_lib.duckdb.not_in_process import NotInProcessError
from storage_lib.io.environment import system_environment
from storage_lib.materialized.algebra import Moment
from storage_lib.spark.materialized.accumulated_refresh import build_state
from storage_lib.spark.materialized.answer_columns import answer_rows
from storage_lib.spark.materialized.in_process import in_process
from storage_lib.spark.materialized.refresh_commit import (
    RefreshCommit,
    Written,
    commit_difference,
    commit_difference_here,
)
from storage_lib.spark.materialized.refresh_plan import RefreshPlan, columns_of
from storage_lib.spark.materialized.refresh_result import RefreshEngine
from storage_lib.spark.materialized.source_delta import source_rows, stored_rows
from storage_lib.spark.materialized.source_views import source_views
from storage_lib.spark.materialized.weighted_rows import net_rows, weighted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from storage_lib.materialized.algebra import Views
    from storage_lib.spark.materialized.accumulated_plan import AccumulatedPlan
    from storage_lib.spark.materialized.source_tables import BoundQuery
    from storage_lib.table.dynamic_table import DynamicTable

_LOGGER = logging.getLogger(__name__)
_SIZE_HERE_MAX = 16 << 20
"""Bytes of the files of small tables: the whole answer is put into the memory of this process."""


def write_whole(
    spark: SparkSession | None,
    table: DynamicTable,
    bound: BoundQuery,
    plan: RefreshPlan,
    commit: RefreshCommit,
    where: Column | None = None,
) -> Written:
    """Write the difference between the table and the whole answer, of the rows ``where`` only.

    This process computes the answer over small tables, and Spark all others. Raises ``NotInProcessError``, with nothing
    written, where it needs a session and has none.
    """
    if where is None:
        try:
            with in_process(spark, table, bound, plan, {}, size_max=_SIZE_HERE_MAX) as here:
                difference = here.whole()
        except NotInProcessError as why:
            if spark is None:
                raise
            _LOGGER.debug("table %s: Spark computes its answer: %s", table.name, why)
        else:
            written = commit_difference_here(difference, table, commit)
            return Written(written, _rows_read(bound.sources, plan), RefreshEngine.DUCKDB)
    if spark is None:
        raise NotInProcessError("only Spark computes a part of an answer")
    with _newest(spark, bound, plan) as views:
        answer = weighted(spark.sql(bound.compiled.full(views, Moment.AFTER)), 1)
        rows = answer_rows(table, answer)
        if plan.based_on:
            stored = source_rows(spark, table, [field.name for field in table.schema.fields], plan.based_on)
            rows = rows.union(weighted(stored, -1))
        rows = net_rows(rows if where is None else rows.where(where))
        snapshot = commit_difference(rows, table, commit)
    return Written(snapshot, _rows_read(bound.sources, plan), RefreshEngine.SPARK)


def rebuild_state(
    spark: SparkSession,
    table: DynamicTable,
    bound: BoundQuery,
    plan: RefreshPlan,
    commit: RefreshCommit,
    accumulated: AccumulatedPlan,
) -> Written:
    """Compute the state of the accumulators in full, and write the difference between the table and their answer."""
    with _newest(spark, bound, plan) as views:
        snapshot = build_state(spark, table, views, commit, accumulated)
    return Written(snapshot, _rows_read(bound.sources, plan), RefreshEngine.SPARK)


def _newest(spark: SparkSession, bound: BoundQuery, plan: RefreshPlan) -> AbstractContextManager[Views]:
    """Return views of the sources at the snapshots that the refresh brings the table to."""

    def frame_of(name: str, _: Moment) -> DataFrame:
        source = bound.sources[name]
        return source_rows(spark, source, columns_of(bound.compiled, name, source), plan.after[name])

    return source_views(spark, system_environment().new_name(), frame_of)


def _rows_read(sources: Mapping[str, DynamicTable], plan: RefreshPlan) -> dict[str, int]:
    return {name: stored_rows(source, plan.after[name]) for name, source in sources.items()}
