"""The same queries of Nexmark, kept up to date by a streaming job of Flink's SQL over the same kind of tables.

Flink reads the changes of tables in Paimon's format and writes the answer into such a table. A checkpoint stores how
far the job has read each source, as a consumer of that table; a change counts as contained when the checkpoint that
contains it is complete, which is shortly before the commit of its rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from benchmarks.incremental_work.answer_check import WrongRowsError
from benchmarks.incremental_work.nexmark_freshness import RefreshCommit, ages_of
from benchmarks.incremental_work.nexmark_sources import BUCKETS, NexmarkSources
from benchmarks.incremental_work.nexmark_texts import KEYS, LOSE_ROWS, in_flink_sql, nexmark_queries, tables_in
from tests.support.flink import FLINKS, Flink
from tests.support.line_servant import RefusedError

if TYPE_CHECKING:
    from benchmarks.incremental_work.nexmark_refreshes import NexmarkWork
    from storage_lib import DynamicTable
    from storage_lib.catalog.catalog import Catalog

_RELEASE = "2.0"
_TYPES = {("q19", "place"): pa.int64()}
"""Types of columns that are other ones in Flink, whose ROW_NUMBER is a BIGINT."""

_REFUSAL = "org.apache.flink.table.api.TableException"
"""Start of Flink's message about a query that it can't run over a stream."""
_CONSUMER = "benchmark"
_WITH_OLD_ROWS = "/*+ OPTIONS('changelog-producer' = 'input') */"
"""Otherwise Paimon's sink does not ask for old rows, and keeps those that leave an answer without a new row."""
_POLL_SECONDS = 0.01
_CHECK_SECONDS = 1
_WAIT_SECONDS_MAX = 120
_SHOWN = 300


class NexmarkFlink:
    """Runs each query of a work that this library has answered before, whose answers' columns are taken."""

    def __init__(self, catalog: Catalog, work: NexmarkWork, *, cores: int, checkpoint_seconds: float) -> None:
        self._catalog = catalog
        self._warehouse = Path(catalog.warehouse)
        self._work = work
        self._cores = cores
        self._checkpoint_seconds = checkpoint_seconds

    @staticmethod
    def is_set_up() -> bool:
        """Return whether Flink's jars are there; ``make servers`` gets them."""
        return (FLINKS[_RELEASE] / "lib").exists()

    def run(self) -> Iterator[dict[str, Any]]:
        """Yield a record for each query. Raises ``WrongRowsError``, and ``RefusedError`` if a job fails."""
        texts = nexmark_queries()
        for name in self._work.names:
            # A JVM for each query: memory and compiled code are not shared.
            with Flink(_RELEASE, heap="2g", compiler=()) as flink:
                record = self._measured(flink, name, texts[name])
            yield {
                "work": "nexmark flink",
                "query": name,
                "rate": self._work.rate,
                "seconds": self._work.seconds,
                "checkpoint_seconds": self._checkpoint_seconds,
                **record,
            }

    def _measured(self, flink: Flink, name: str, text: str) -> dict[str, Any]:
        sources = NexmarkSources(self._catalog, self._work.database(name, "flink"), self._work.rate)
        answer = self._answer_table(name, sources.database)
        read = {each: sources.tables[each] for each in sorted(tables_in(text))}
        try:
            job = self._begin(flink, sources.database, list(read), text, loses_rows=name in LOSE_ROWS)
        except RefusedError as error:
            if not str(error).startswith(_REFUSAL):
                raise
            return {"refused": str(error)[:_SHOWN]}
        checkpoints: list[RefreshCommit] = []
        with sources.written(self._work.seconds) as writer:
            next_check = 0.0
            while writer.is_running():
                _look(checkpoints, read)
                if time.monotonic() > next_check:
                    flink.check(self._warehouse, job)
                    next_check = time.monotonic() + _CHECK_SECONDS
                time.sleep(_POLL_SECONDS)
        newest = {each: table.refresh().inspect.latest_snapshot_id() or 0 for each, table in read.items()}
        if not self._contains_all(flink, job, checkpoints, read, newest):
            flink.end(self._warehouse, job)
            return {"late": f"no checkpoint contained all changes {_WAIT_SECONDS_MAX} s after the last one"}
        rows = self._right_rows(flink, job, sources, name, text, answer, newest)
        flink.end(self._warehouse, job)
        return {"refreshes": len(checkpoints), "rows": rows, **ages_of(name, writer.commits, checkpoints)}

    def _answer_table(self, name: str, database: str) -> DynamicTable:
        """Create a table with the columns of this library's answer, and a key."""
        ours = self._catalog.load_table(f"{self._work.database(name)}.answer").to_arrow().schema
        key = KEYS.get(name, ("id",))
        types = {each.name: _TYPES.get((name, each.name), each.type) for each in ours}
        columns = pa.schema([pa.field(each, kind, nullable=each not in key) for each, kind in types.items()])
        options = {"bucket": str(BUCKETS), "log.system": "none"}
        return self._catalog.create_table(f"{database}.answer", columns, primary_key=key, options=options)

    def _begin(self, flink: Flink, database: str, read: list[str], text: str, *, loses_rows: bool) -> str:
        options = (
            f"'consumer-id' = '{_CONSUMER}', 'consumer.expiration-time' = '1 h', "
            "'continuous.discovery-interval' = '50 ms'"
        )
        views = [
            f"CREATE TEMPORARY VIEW `{each}` AS SELECT * FROM `{database}`.`{each}` /*+ OPTIONS({options}) */"
            for each in read
        ]
        return flink.begin(
            self._warehouse,
            *views,
            f"INSERT INTO `{database}`.`answer` {_WITH_OLD_ROWS if loses_rows else ''} {in_flink_sql(text)}",
            parallelism=self._cores,
            checkpoint_seconds=self._checkpoint_seconds,
        )

    def _contains_all(
        self,
        flink: Flink,
        job: str,
        checkpoints: list[RefreshCommit],
        read: dict[str, DynamicTable],
        newest: dict[str, int],
    ) -> bool:
        """Wait for a checkpoint that contains all commits; return whether there was one in time."""
        end = time.monotonic() + _WAIT_SECONDS_MAX
        while not checkpoints or any(checkpoints[-1].positions[each] < newest[each] for each in newest):
            if time.monotonic() > end:
                return False
            flink.check(self._warehouse, job)
            _look(checkpoints, read)
            time.sleep(_POLL_SECONDS)
        return True

    def _right_rows(
        self,
        flink: Flink,
        job: str,
        sources: NexmarkSources,
        name: str,
        text: str,
        answer: DynamicTable,
        newest: dict[str, int],
    ) -> int:
        """Compare the answer with DuckDB's, until the last commit is there; return the number of rows."""
        end = time.monotonic() + _WAIT_SECONDS_MAX
        while True:
            flink.check(self._warehouse, job)
            try:
                return sources.check(f"Flink's {name}", text, answer.refresh().to_arrow(), newest)
            except WrongRowsError:
                if time.monotonic() > end:
                    raise
                time.sleep(self._checkpoint_seconds)


def _look(checkpoints: list[RefreshCommit], read: dict[str, DynamicTable]) -> None:
    """Add a checkpoint if the consumers have moved."""
    positions = {}
    for name, table in read.items():
        found = [each.next_snapshot_id for each in table.consumers.list() if each.name == _CONSUMER]
        if not found:
            return
        positions[name] = found[0] - 1
    if not checkpoints or positions != checkpoints[-1].positions:
        checkpoints.append(RefreshCommit(round(1000 * time.time()), positions))
