"""``format("dynamic_table_commits")``: a stream of what was committed to several tables, without the rows.

Each micro-batch has one row: the snapshots of the tables before it and after it. Spark stores them in the checkpoint
before the micro-batch runs, so a restarted stream computes the same change again.

    {} ─▶ {"shop.orders": {"table": "<uuid>@main", "snapshot": 7, "mark": "..."}} ─▶ …
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StringType, StructField, StructType

from storage_lib.catalog.table_cache import table_at
from storage_lib.materialized.sources.consistent_snapshots import consistent_snapshots
from storage_lib.materialized.sources.own_source import OwnSource
from storage_lib.materialized.sources.source_positions import SourcePosition, position_of, source_name
from storage_lib.spark.data_source.remembering_reader import reader_for_spark
from storage_lib.spark.data_source.statement_options import StatementOptions
from storage_lib.spark.versions.stream_api import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.protocol.table_address import TableAddress

SOURCE_NAME = "dynamic_table_commits"
TABLES = "tables"
"""Option with the names of the tables, as a list in JSON. The other options are those of one of them."""

_REGISTERED = "dynamic_table_commits.registered"

Offset = dict[str, Any]

_STRUCT = StructType([StructField("before", StringType()), StructField("after", StringType())])


@dataclass(frozen=True, slots=True)
class TablePosition:
    """A snapshot of a table, and the table's identity (``source_name``)."""

    table: str
    position: SourcePosition


Positions = Mapping[str, TablePosition]
"""Positions by ``database.table``; a table that is missing is at its beginning."""


def register_commits(spark: SparkSession) -> None:
    """Register the format in this session, once: Spark warns about a second time."""
    if spark.conf.get(_REGISTERED, None) is None:
        spark.dataSource.register(CommitSource)
        spark.conf.set(_REGISTERED, "true")


def positions_in(text: str) -> Positions:
    """Parse an offset of the source."""
    return {
        name: TablePosition(each["table"], SourcePosition(int(each["snapshot"]), each["mark"]))
        for name, each in json.loads(text).items()
    }


@dataclass
class CommitRange(InputPartition):
    """Offsets of one micro-batch."""

    value: tuple[str, str]


class CommitSource(DataSource):
    """Data source for the commits of some tables of one catalog."""

    @classmethod
    def name(cls) -> str:
        """Name of the source in ``format(...)``."""
        return SOURCE_NAME

    def schema(self) -> StructType:
        """Return the columns: two offsets in JSON."""
        return _STRUCT

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802  Spark's name
        """Return a stream reader of the tables' commits."""
        given = {key: value for key, value in self.options.items() if key != TABLES}
        reader = CommitReader(StatementOptions.parse(given).address, tuple(json.loads(self.options[TABLES])))
        return reader_for_spark(reader)


class CommitReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Stream reader of commits; it has no state that a restart would lose."""

    def __init__(self, home: TableAddress, names: Sequence[str]) -> None:
        self._home = home
        self._names = names
        self._ends = False
        self._last: Offset | None = None

    def initialOffset(self) -> Offset:  # noqa: N802  Spark's name
        """Return the beginning of all tables."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  Spark's name
        """Let a micro-batch contain all commits that exist."""
        return ReadAllAvailable()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: ARG002, N802  Spark's name
        """Return the newest snapshots that agree about the tables from which several of them derive."""
        if not self._ends:
            return self._newest(start)
        if self._last is None:
            self._last = self._newest(start)
        return self._last

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        """Let the next offset be the end of this run."""
        self._ends = True
        self._last = None

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return one partition, whose row is the range."""
        return [CommitRange((json.dumps(start), json.dumps(end)))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the row of a range."""
        before, after = partition.value
        yield pa.RecordBatch.from_pydict({"before": [before], "after": [after]})

    def _newest(self, start: Offset) -> Offset:
        tables = {name: table_at(replace(self._home, name=name)) for name in self._names}
        reached = {name: int(each["snapshot"]) for name, each in start.items() if each["snapshot"]}
        chosen = consistent_snapshots({name: OwnSource(table) for name, table in tables.items()}, reached)
        if chosen is None:
            return start
        same = {
            name
            for name, each in start.items()
            if (each["table"], each["snapshot"]) == (source_name(tables[name]), chosen[name])
        }
        return {
            name: start[name] if name in same else _offset_at(table, chosen[name]) for name, table in tables.items()
        }


def _offset_at(table: DynamicTable, snapshot_id: int) -> Offset:
    position = position_of(None if snapshot_id == 0 else table.inspect.snapshot(snapshot_id))
    return {"table": source_name(table), "snapshot": position.snapshot_id, "mark": position.mark}
