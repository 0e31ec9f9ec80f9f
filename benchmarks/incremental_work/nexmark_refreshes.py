"""Keeps one query of Nexmark after the other fresh while a process writes events, and measures the ages."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.incremental_work.nexmark_freshness import RefreshCommit, SourceCommit, ages_of
from benchmarks.incremental_work.nexmark_sources import NexmarkSources
from benchmarks.incremental_work.nexmark_texts import nexmark_queries
from storage_lib.io.environment import system_environment
from storage_lib.materialized.service.fresh_tables import FreshTables
from storage_lib.spark import create_materialized_table, refresh

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib import DynamicTable
    from storage_lib.catalog.catalog import Catalog
    from storage_lib.spark import RefreshResult

_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class NexmarkWork:
    """Queries by name, and events a second for some seconds."""

    names: Sequence[str]
    rate: int
    seconds: float

    def database(self, name: str, prefix: str = "nexmark") -> str:
        """Return the database of a query's tables."""
        return f"{prefix}_{self.rate}_{name}"


class NexmarkRefreshes:
    """Each query has tables of its own, which begin with ten seconds of events."""

    def __init__(self, spark: SparkSession, catalog: Catalog, work: NexmarkWork) -> None:
        self._spark = spark
        self._catalog = catalog
        self._work = work

    def run(self) -> Iterator[dict[str, Any]]:
        """Yield a record for each query. Raises ``WrongRowsError``, and what a refresh raises."""
        texts = nexmark_queries()
        for name in self._work.names:
            yield self._measured(name, texts[name])

    def _measured(self, name: str, text: str) -> dict[str, Any]:
        sources = NexmarkSources(self._catalog, self._work.database(name), self._work.rate)
        table = create_materialized_table(
            self._catalog, f"{sources.database}.answer", text, spark=self._spark, options={"log.system": "none"}
        )
        refresh(self._spark, table)
        results: list[RefreshResult] = []
        commits = self._kept_fresh(table, sources, results)
        last = refresh(self._spark, table)
        results += [last] if last.snapshot_id is not None else []
        rows = sources.check(name, text, table.refresh().to_arrow(), _by_short_name(last))
        written = [each for each in results if each.snapshot_id is not None]
        refreshes = [
            RefreshCommit(table.inspect.snapshot(each.snapshot_id).time_millis, _by_short_name(each))
            for each in written
            if each.snapshot_id is not None
        ]
        return {
            "work": "nexmark",
            "query": name,
            "rate": self._work.rate,
            "seconds": self._work.seconds,
            "refreshes": len(written),
            "mode": "/".join(sorted({str(each.mode) for each in written})),
            "reason": next((each.reason for each in written if each.mode == "full"), ""),
            "refresh_seconds": round(float(np.median([each.seconds for each in written])), 3),
            "rows": rows,
            **ages_of(name, commits, refreshes),
        }

    def _kept_fresh(
        self, table: DynamicTable, sources: NexmarkSources, results: list[RefreshResult]
    ) -> list[SourceCommit]:
        """Refresh the table while the writer runs; return the writer's commits."""

        def report(_: str, outcome: RefreshResult | Exception) -> None:
            if isinstance(outcome, Exception):
                raise outcome
            results.append(outcome)

        tables = FreshTables(
            partial(refresh, self._spark), self._catalog, system_environment().clock, report, [table.name]
        )
        with sources.written(self._work.seconds) as writer:
            # Refreshes continue until the writer has ended; one more after this loop contains its last commits.
            while writer.is_running():
                tables.run_once()
                time.sleep(_POLL_SECONDS)
        return writer.commits


def _by_short_name(result: RefreshResult) -> dict[str, int]:
    return {source.partition(".")[2]: at for source, at in result.positions.items()}
