"""Keeps one query of Nexmark after the other fresh while a process writes events, and measures the ages."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from benchmarks.incremental_work.answer_check import AnswerCheck
from benchmarks.incremental_work.nexmark_events import COLUMNS, ROUND, events
from benchmarks.incremental_work.nexmark_freshness import RefreshCommit, SourceCommit, freshness
from benchmarks.incremental_work.nexmark_texts import nexmark_queries
from storage_lib.io.environment import system_environment
from storage_lib.spark import create_materialized_table, refresh
from storage_lib.spark.materialized.fresh_tables import FreshTables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib import DynamicTable
    from storage_lib.catalog.catalog import Catalog
    from storage_lib.spark import RefreshResult

PERCENTS = (50, 99)
_BUCKETS = 2
_HOPS = 5
_SIDE_ROWS = 1000
_LOADED_SECONDS = 10
_WARM_UP_REFRESHES = 3
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class NexmarkWork:
    """Queries by name, and events a second for some seconds."""

    names: Sequence[str]
    rate: int
    seconds: float


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
        database = f"nexmark_{self._work.rate}_{name}"
        sources = {each: self._source(f"{database}.{each}", columns) for each, columns in COLUMNS.items()}
        sources |= self._side_tables(database)
        rounds = self._work.rate * _LOADED_SECONDS // ROUND
        now = time.time() * 1000
        created = (now - 1000 * np.arange(rounds * ROUND, 0, -1) / self._work.rate).astype(np.int64)
        for each, rows in events(0, rounds, created).items():
            sources[each].append(rows)
        table = create_materialized_table(
            self._catalog, f"{database}.answer", text, spark=self._spark, options={"log.system": "none"}
        )
        refresh(self._spark, table)
        results: list[RefreshResult] = []
        commits = self._kept_fresh(table, rounds, results)
        last = refresh(self._spark, table)
        results += [last] if last.snapshot_id is not None else []
        rows = self._checked(name, text, table, sources, last)
        written = [each for each in results if each.snapshot_id is not None]
        refreshes = [
            RefreshCommit(
                table.inspect.snapshot(each.snapshot_id).time_millis,
                {source.partition(".")[2]: at for source, at in each.positions.items()},
            )
            for each in written
            if each.snapshot_id is not None
        ]
        # A query that is refreshed only a few times has no warm part.
        warm = refreshes[_WARM_UP_REFRESHES].time if len(refreshes) > 2 * _WARM_UP_REFRESHES else 0
        read = COLUMNS.keys() & refreshes[-1].positions.keys()
        counted = [each for each in commits if each.table in read and each.time >= warm]
        if not counted:
            message = f"{name}: nothing was committed to its sources; use more seconds"
            raise ValueError(message)
        ages = freshness(counted, refreshes, PERCENTS)
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
            "commits": ages.commits,
            **{f"since_commit_p{each}": ages.since_commit[each] for each in PERCENTS},
            **{f"since_creation_p{each}": ages.since_creation[each] for each in PERCENTS},
        }

    def _kept_fresh(self, table: DynamicTable, rounds: int, results: list[RefreshResult]) -> list[SourceCommit]:
        """Refresh the table while the writer runs; return the writer's commits."""
        errors: list[Exception] = []

        def report(_: str, outcome: RefreshResult | Exception) -> None:
            if isinstance(outcome, Exception):
                errors.append(outcome)
            else:
                results.append(outcome)

        tables = FreshTables(self._spark, self._catalog, system_environment().clock, report, [table.name])
        words = (self._catalog.warehouse, table.name.partition(".")[0], str(self._work.rate), str(rounds))
        program = [sys.executable, "-m", "benchmarks.incremental_work.nexmark_writer", *words]
        with (
            TemporaryFile("w+") as lines,
            subprocess.Popen(program, stdin=subprocess.PIPE, stdout=lines, text=True) as writer,
        ):
            timer = threading.Timer(self._work.seconds, writer.stdin.close)  # type: ignore[union-attr]
            timer.start()
            # Refreshes continue until the writer has ended; one more after this loop contains its last commits.
            while writer.poll() is None and not errors:
                tables.run_once()
                time.sleep(_POLL_SECONDS)
            timer.cancel()
            if errors:
                writer.kill()
                raise errors[0]
            if writer.returncode:
                message = f"the writer of {table.name} ended with code {writer.returncode}"
                raise RuntimeError(message)
            lines.seek(0)
            return [SourceCommit(*json.loads(line)) for line in lines]

    def _checked(
        self,
        name: str,
        text: str,
        table: DynamicTable,
        sources: dict[str, DynamicTable],
        last: RefreshResult,
    ) -> int:
        check = AnswerCheck()
        for source, snapshot_id in last.positions.items():
            short = source.partition(".")[2]
            check.set_rows(short, sources[short].to_arrow(snapshot_id=snapshot_id))
        return check.check(f"{name} at {self._work.rate} events/s", text, table.refresh().to_arrow())

    def _source(self, name: str, columns: pa.Schema) -> DynamicTable:
        options = {"bucket": str(_BUCKETS), "log.system": "none"}
        return self._catalog.create_table(name, columns, primary_key=["id"], options=options)

    def _side_tables(self, database: str) -> dict[str, DynamicTable]:
        side = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("value", pa.string())])
        hop = pa.schema([pa.field("hop", pa.int64(), nullable=False)])
        tables = {
            "side_input": self._source(f"{database}.side_input", side),
            "hop": self._catalog.create_table(
                f"{database}.hop", hop, primary_key=["hop"], options={"bucket": "1", "log.system": "none"}
            ),
        }
        ids = np.arange(_SIDE_ROWS)
        tables["side_input"].append(pa.table({"id": ids, "value": np.char.add("value ", ids.astype(str))}, schema=side))
        tables["hop"].append(pa.table({"hop": np.arange(_HOPS)}, schema=hop))
        return tables
