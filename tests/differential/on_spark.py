"""Runs cases end to end: ``INSERT INTO sink SELECT ...`` of a SQL session, on a real Spark.

Cases run concurrently, since a small stream mostly waits. A query keeps the session's settings from its start.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import StreamingQueryException

from storage_lib import open_catalog
from storage_lib.errors import InvalidInputError, StorageError, UnavailableError
from storage_lib.log_store.log_offsets import LogOffsets
from tests.differential.case import DETAILS, DIMENSION, SOURCE, Case, Change, Drain, MoveDimension
from tests.differential.oracle import Oracle
from tests.differential.outcome import Outcome
from tests.differential.permitted_stops import is_permitted
from tests.differential.played_source import Bag, PlayedSource, bag_of, create_sink, create_tables
from tests.differential.verdict import (
    difference_from_any,
    difference_of_log,
)

NO_STATE_DIRECTORY = "set scan.normalize.state-directory"
"""Error of a Spark query that asks for `scan.normalize=state` without a directory, as these cases do."""
NO_LOG_FOR_STATE = "scan.normalize=state keeps the rows that a stream has read from a log"

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.catalog.catalog import Catalog
    from storage_lib.sql.state.result import Result
    from storage_lib.table.dynamic_table import DynamicTable

_DRAIN_SECONDS = 240
_AT_ONCE = 3
DRAINS_MAX = 2
"""Maximum number of drains of a case; a drain takes seconds on Spark."""


class OnSpark:
    """Runs cases in databases of one warehouse. Without ``bootstrap_servers`` no table has a log."""

    def __init__(self, spark: SparkSession, directory: Path, bootstrap_servers: str | None) -> None:
        self._spark = spark
        self._directory = directory
        self._servers = bootstrap_servers
        self._oracle = Oracle()
        self._one_at_a_time = threading.Lock()
        self._count = 0

    def run_all(self, cases: Iterable[Case], *, at_once: int = _AT_ONCE) -> Iterator[tuple[Case, Outcome]]:
        """Yield each case with its outcome, in order."""
        # A thread that is new to Spark has no active session, which our source needs.
        with ThreadPoolExecutor(at_once, initializer=self._be_active) as threads:
            futures = [(case, threads.submit(self.run, case)) for case in cases]
            for case, future in futures:
                yield case, future.result()

    def run(self, case: Case) -> Outcome:
        """Run one case and return its outcome."""
        from storage_lib.sql import Session

        with self._one_at_a_time:
            self._count += 1
            database = f"d{self._count}"
        options = {} if self._servers is None else {"log.kafka.bootstrap.servers": self._servers}
        catalog = open_catalog(str(self._directory / "warehouse"), options)
        with Session(self._spark, catalog, database=database) as session:
            session.execute("SET 'execution.runtime-mode' = 'streaming'")

            def start(statement: str) -> Result:
                with self._one_at_a_time:
                    for key, value in case.conf:
                        self._spark.conf.set(key, value)
                    return session.execute(statement)

            catalog.create_database(database)
            try:
                return _Run(case, start, catalog, database, self._directory, self._answer).outcome()
            finally:
                catalog.drop_database(database, cascade=True)

    def _be_active(self) -> None:
        jvm: Any = self._spark._jvm
        jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(self._spark._jsparkSession)

    def _answer(self, case: Case, rows: Bag) -> Bag:
        with self._one_at_a_time:
            return self._oracle.answer(case, rows.elements())


class _Run:
    def __init__(
        self,
        case: Case,
        start: Callable[[str], Result],
        catalog: Catalog,
        database: str,
        directory: Path,
        answer: Callable[[Case, Bag], Bag],
    ) -> None:
        self._case = case
        self._start = start
        self._checkpoint = directory / "checkpoints" / database
        self._answer = answer
        self._source: PlayedSource = create_tables(catalog, case, database, options={})
        self._sink: DynamicTable = create_sink(catalog, case, database, options={})
        self._drains = 0

    def outcome(self) -> Outcome:
        case = self._case
        dimension, moments = case.dimension, list[Case]()
        for played, step in enumerate(case.steps, start=1):
            if isinstance(step, MoveDimension):
                dimension = step.rows
                self._source.move_dimension(dimension)
                continue
            if not isinstance(step, Drain):
                self._source.play(step)
                continue
            rows = self._source.rows()
            if rows != self._source.model.rows():
                return self._wrong("the source does not hold what was written into it", rows)
            if not moments or moments[-1].dimension != dimension:
                moments.append(replace(case, dimension=dimension))
            try:
                refusal = self._drain(step)
            except StreamingQueryException as error:
                return self._wrong(f"an error that is none of ours: {str(error)[:1000]}", rows)
            except StorageError as error:
                said = f"{type(error).__name__}: {error}"
                # Spark does not report whether the plan adds rows up; the error message does.
                lacks_directory = case.normalize == "state" and (NO_STATE_DIRECTORY in said or NO_LOG_FOR_STATE in said)
                is_right = lacks_directory or is_permitted(case, said, case.steps[:played], self._answer, adds_up=True)
                return Outcome(verdict="stopped", said=said) if is_right else self._wrong(said, rows)
            if refusal is not None:
                return Outcome(verdict="refused", said=refusal)
            wrong = self._difference(moments, rows)
            if wrong is not None:
                return self._wrong(wrong, rows)
            self._drains += 1
        return Outcome(verdict="right", drains=self._drains)

    def _drain(self, step: Drain, *, tries: int = 8) -> str | None:
        """Run the INSERT to its end; return None, or the reason why it was refused."""
        hint = f"/*+ OPTIONS('available-now' = 'true', 'checkpoint-location' = '{self._checkpoint}') */"
        try:
            result = self._start(f"INSERT INTO sink {hint} {in_our_words(self._case, step.rows_max)}")
        except InvalidInputError as error:
            return str(error)
        assert result.stream is not None
        try:
            result.stream.awaitTermination(_DRAIN_SECONDS)
        except UnavailableError:
            # Retryable: on a busy machine Spark gives up on a Python process after ten seconds.
            if not tries:
                raise
            return self._drain(step, tries=tries - 1)
        if result.stream.isActive:
            result.stream.stop()
            raise TimeoutError(f"the stream did not end within {_DRAIN_SECONDS} s")
        return None

    def _difference(self, moments: Sequence[Case], rows: Bag) -> str | None:
        case, sink = self._case, self._sink
        if sink.new_write().is_log_first:
            sink.maintenance.tier_log()
        names = [item.name for item in case.query.branches[0].items]
        found = bag_of(sink.to_arrow(), names)
        return difference_from_any(moments, rows, found, self._answer) or (
            None if sink.log is None else difference_of_log(case, changes_in_log(sink, names), found)
        )

    def _wrong(self, said: str, rows: Bag) -> Outcome:
        return Outcome(
            verdict="wrong", said=f"after drain {self._drains + 1}: {said}\nsource: {sorted(rows.elements(), key=str)}"
        )


def in_our_words(case: Case, rows_max: int | None = None) -> str:
    """Return the query with this library's table names and hints; all tables but the source are read as snapshots."""
    options = [] if rows_max is None else [f"'maxrowspertrigger' = '{rows_max}'"]
    if not case.from_snapshot:
        options += ["'log.scan' = 'from-timestamp'", "'log.scan.timestamp-millis' = '1'"]
    if case.normalize is not None:
        options.append(f"'scan.normalize' = '{case.normalize}'")
    hint = f" /*+ OPTIONS({', '.join(options)}) */" if options else ""
    batch = " /*+ OPTIONS('execution.runtime-mode' = 'batch') */"
    named = case.query.streamed_text.replace(SOURCE, "src" + hint)
    return named.replace(DIMENSION, "dim" + batch).replace(DETAILS, "details" + batch)


def changes_in_log(table: DynamicTable, names: list[str]) -> list[Change]:
    """Return all changes in the log, in order within each bucket; an upsert of null is a deletion."""
    assert table.log is not None
    symbols = ("+I", "-U", "+U", "-D")
    changes: list[Change] = []
    for batch in table.log.read(LogOffsets(), table.log.latest_offsets()):
        columns = [batch.rows.column(name).to_pylist() for name in names]
        rows = zip(*columns, strict=True)
        changes += [(symbols[kind], row) for kind, row in zip(batch.kinds.to_pylist(), rows, strict=True)]
    return changes
