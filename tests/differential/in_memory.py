"""Runs cases on real tables in memory, with the code of Spark's driver and tasks but without Spark.

Tables, logs, the connector's reader and its tasks are the product's; DuckDB answers the query in between, as in
``without_spark``. This shows that the stream simulated there equals the real one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from storage_lib import MemoryCatalog
from storage_lib.errors import InvalidInputError, StorageError
from storage_lib.spark.data_source.stream_reader import START, StreamPartition, StreamScan, TableStreamReader
from storage_lib.spark.tasks.table_tasks import commit_tasks, write_task
from storage_lib.spark.types.spark_schema import arrow_schema_of, struct_of
from tests.differential.case import Case, Drain, MoveDimension
from tests.differential.decisions import KIND, Decision, decided
from tests.differential.on_spark import changes_in_log
from tests.differential.oracle import Oracle
from tests.differential.outcome import Outcome
from tests.differential.permitted_stops import is_permitted
from tests.differential.played_source import Bag, bag_of, create_sink, create_tables
from tests.differential.verdict import (
    difference_from_any,
    difference_of_log,
)
from tests.support.fake_environment import fake_environment

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable

_DATABASE = "d"
_DIES = 0.15
"""Probability that a batch is repeated by a new process without any state of the first one."""


class InMemory:
    """Runs cases one after the other."""

    def __init__(self) -> None:
        self._oracle = Oracle()

    def run(self, case: Case) -> Outcome:
        try:
            decision = decided(case)
        except InvalidInputError as error:
            return Outcome(verdict="refused", said=str(error))
        catalog = MemoryCatalog(environment=fake_environment())
        catalog.create_database(_DATABASE)
        with TemporaryDirectory() as directory:
            try:
                return _Run(case, decision, catalog, Path(directory), self._oracle).outcome()
            finally:
                catalog.drop_database(_DATABASE, cascade=True)


@dataclass(frozen=True)
class _Key:
    """Key under which Spark's tasks find a cached table."""

    of: DynamicTable

    @property
    def name(self) -> str:
        return self.of.name

    def table(self) -> DynamicTable:
        return self.of

    def refuse_if_dropped(self) -> None:
        """Do nothing: the table exists."""


class _Run:
    def __init__(self, case: Case, decision: Decision, catalog: MemoryCatalog, directory: Path, oracle: Oracle) -> None:
        self._case = case
        self._decision = decision
        self._directory = directory
        self._oracle = oracle
        self._rng = Random(case.seed)  # noqa: S311  chance, not secrets
        self._source = create_tables(catalog, case, _DATABASE, options={})
        self._sink = create_sink(catalog, case, _DATABASE, options={})
        self._position: dict[str, Any] = START
        self._batch = 0
        self._drains = 0

    def outcome(self) -> Outcome:
        case = self._case
        dimension, moments = case.dimension, list[Case]()
        for played, step in enumerate(case.steps, start=1):
            if isinstance(step, MoveDimension):
                dimension = step.rows
                continue
            if not isinstance(step, Drain):
                self._source.play(step)
                continue
            if not moments or moments[-1].dimension != dimension:
                moments.append(replace(case, dimension=dimension))
            rows = self._source.rows()
            try:
                self._drain(step, moments[0 if self._decision.plan.pins else -1])
            except StorageError as error:
                said = f"{type(error).__name__}: {error}"
                is_right = is_permitted(
                    case, said, case.steps[:played], self._answer, adds_up=self._decision.plan.adds_up
                )
                return Outcome(verdict="stopped", said=said) if is_right else self._wrong(said, rows)
            wrong = self._difference(moments, rows)
            if wrong is not None:
                return self._wrong(wrong, rows)
            self._drains += 1
        return Outcome(verdict="right", drains=self._drains)

    def _answer(self, case: Case, rows: Bag) -> Bag:
        return self._oracle.answer(case, rows.elements())

    def _drain(self, step: Drain, moment: Case) -> None:
        """Drain as Spark does for a query with the trigger available-now."""
        reader = self._reader(step)
        reader.prepareForTriggerAvailableNow()
        limit = reader.getDefaultReadLimit()
        while (end := reader.latestOffset(self._position, limit)) != self._position:
            self._write(moment, self._arrived(reader, end))
            if self._rng.random() < _DIES:
                # Crash between the commit of the table and that of the checkpoint, so the batch is repeated.
                reader = self._reader(step)
                reader.prepareForTriggerAvailableNow()
                self._write(moment, self._arrived(reader, end))
            self._position, self._batch = end, self._batch + 1

    def _reader(self, step: Drain) -> TableStreamReader:
        case, plan, table = self._case, self._decision.plan, self._source.table
        normalize = plan.normalize if plan.normalize in ("lookup", "state") else case.normalize
        scan = StreamScan(
            startup=None if case.from_snapshot else "from-timestamp",
            timestamp_millis=None if case.from_snapshot else 1,
            rows_per_trigger_max=step.rows_max,
            normalize=normalize,
            state_directory=str(self._directory / "state") if normalize == "state" else None,
            whole_commits=plan.adds_up,
        )
        struct = struct_of(table.schema, row_kind_column=table.new_read().stream_row_kind_column, has_position=True)
        return TableStreamReader(_Key(table), struct, scan)  # type: ignore[arg-type]

    def _arrived(self, reader: TableStreamReader, end: dict[str, Any]) -> pa.Table:
        """Return the changes up to a position: in order within each partition, partitions interleaved at random."""
        parts = [list(_rows_of(reader, each)) for each in reader.partitions(self._position, end)]  # type: ignore[arg-type]
        struct = struct_of(
            self._source.table.schema,
            row_kind_column=self._source.table.new_read().stream_row_kind_column,
            has_position=True,
        )
        mixed: list[pa.RecordBatch] = []
        while parts := [part for part in parts if part]:
            mixed.append(self._rng.choice(parts).pop(0))
        return pa.Table.from_batches(mixed, arrow_schema_of(struct))

    def _write(self, moment: Case, arrived: pa.Table) -> None:
        decision, key = self._decision, _Key(self._sink)
        found = decision.answer(self._oracle, moment, arrived, self._rng)
        names = [item.name for item in self._case.query.branches[0].items]
        kept = [name for name in found.column_names if name in (*names, KIND)]
        kept += [name for name in ("_row_position",) if decision.plan.carries_position]
        rows = found.select(kept).cast(_required(found.select(kept).schema, self._sink))
        order = replace(self._sink.new_write().begin(commit_user="stream"), identifiers_ascend=True)
        message = write_task(key, order, rows.to_batches(), adds_up=decision.plan.adds_up)  # type: ignore[arg-type]
        commit_tasks(self._sink, order, [message], self._batch, defers_tiering=True)

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


def _rows_of(reader: TableStreamReader, partition: StreamPartition) -> Iterator[pa.RecordBatch]:
    for batch in reader.read(partition):
        yield from (batch.slice(place, 1) for place in range(batch.num_rows))


def _required(schema: pa.Schema, table: DynamicTable) -> pa.Schema:
    """Convert DuckDB's types to the table's."""
    own = table.arrow_schema
    return pa.schema(
        [pa.field(each.name, own.field(each.name).type if each.name in own.names else each.type) for each in schema]
    )
