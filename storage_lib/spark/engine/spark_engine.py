"""Spark as an engine of materialized tables, after DuckDB, which computes small refreshes faster."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from storage_lib.duckdb.duckdb_engine import DuckDbEngine
from storage_lib.materialized.plan.refresh_result import RefreshEngine
from storage_lib.spark.compaction.distributed_compaction import compact_after_write
from storage_lib.spark.engine.answer_columns import refusals_of_spark, typed_columns
from storage_lib.spark.engine.apply_changes import apply_changes
from storage_lib.spark.engine.session_settings import settings_of, unusual_setting, with_settings
from storage_lib.spark.engine.typed_accumulators import typed_accumulators
from storage_lib.spark.engine.whole_answer import write_answer
from storage_lib.spark.tasks.active_session import active_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.materialized.accumulators.accumulated_query import AccumulatedQuery
    from storage_lib.materialized.engine import AnswerColumn, Engine, RefreshRun
    from storage_lib.materialized.plan.accumulated_plan import AccumulatedPlan
    from storage_lib.materialized.sources.source import SourceDelta
    from storage_lib.materialized.sources.source_tables import BoundQuery
    from storage_lib.schema.filter.predicate import Predicate
    from storage_lib.schema.options.value_settings import Settings
    from storage_lib.table.dynamic_table import DynamicTable


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """Computes every query that a materialized table may have, in a session with the settings of its definition."""

    spark: SparkSession
    _sessions: dict[Settings, SparkSession] = field(default_factory=dict)

    @property
    def kind(self) -> RefreshEngine:
        """The engine's name in results."""
        return RefreshEngine.SPARK

    def settings(self) -> Settings:
        """See ``Engine.settings``."""
        return settings_of(self.spark)

    def answer_columns(self, name: str, bound: BoundQuery) -> Sequence[AnswerColumn]:
        """See ``Engine.answer_columns``."""
        return typed_columns(self._session(bound), name, bound)

    def accumulated_query(self, bound: BoundQuery) -> AccumulatedQuery | str | None:
        """See ``Engine.accumulated_query``."""
        return typed_accumulators(self._session(bound), bound)

    def apply_changes(
        self, run: RefreshRun, changed: Mapping[str, SourceDelta], accumulated: AccumulatedPlan | None
    ) -> Snapshot | None:
        """See ``Engine.apply_changes``."""
        with self._for(run) as spark:
            return apply_changes(spark, run, changed, accumulated)

    def write_answer(
        self, run: RefreshRun, accumulated: AccumulatedPlan | None, where: Predicate | None = None
    ) -> Snapshot | None:
        """See ``Engine.write_answer``."""
        with self._for(run) as spark:
            return write_answer(spark, run, accumulated, where)

    def compact(self, table: DynamicTable) -> None:
        """See ``Engine.compact``; large compactions are jobs."""
        compact_after_write(self.spark, table)

    def _session(self, bound: BoundQuery) -> SparkSession:
        """Return the session of a query, which is copied once if its settings are others."""
        settings = bound.settings
        if settings is None:
            return self.spark
        if settings not in self._sessions:
            self._sessions[settings] = with_settings(self.spark, settings)
        return self._sessions[settings]

    @contextmanager
    def _for(self, run: RefreshRun) -> Iterator[SparkSession]:
        spark = self._session(run.bound)
        with active_session(spark), refusals_of_spark(run.table.name):
            yield spark


def duckdb_beside(spark: SparkSession) -> DuckDbEngine:
    """Return DuckDB for the refreshes whose values are the same as under the settings of this session."""
    return DuckDbEngine(partial(unusual_setting, spark))


def engines_of(spark: SparkSession) -> tuple[Engine, ...]:
    """Return the engines of a refresh in the order in which they are asked."""
    return duckdb_beside(spark), SparkEngine(spark)
