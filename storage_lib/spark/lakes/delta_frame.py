"""A version of a table of Delta Lake as a data frame, read by Python tasks: Delta's own connector ends at Spark 4.2."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

from storage_lib.spark.tasks.active_session import active_session
from storage_lib.spark.types.spark_schema import arrow_schema_of, conform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from storage_lib.lakes.delta_table import DeltaVersion
    from storage_lib.schema.filter.predicate import Predicate

_FORMAT = "dynamic_table_delta_version"
_VERSION, _FILES, _NEEDED = "version", "files", "needed"
_SECRETS = "storage-secrets"
"""Spark shows no value of an option whose name has this word."""
_REGISTERED = "dynamic_table.delta_registered"
_REGISTERING = threading.Lock()
_TASK_BYTES = 64 * 1024 * 1024


def delta_struct(version: DeltaVersion) -> StructType:
    """Return the columns of a version as a struct of Spark."""
    return from_arrow_schema(version.schema(), prefer_timestamp_ntz=True)


def delta_frame(
    spark: SparkSession,
    version: DeltaVersion,
    struct: StructType,
    *,
    needed: Collection[str] | None = None,
    predicate: Predicate | None = None,
) -> DataFrame:
    """Return some columns of a version, lazily. ``struct`` is a part of ``delta_struct``.

    Columns that are not ``needed`` (None: all are) are null. Files without a row that ``predicate`` may hold for are
    left out; the rows still have to be filtered.
    """
    _register(spark)
    files = version.files(predicate)
    options = {
        _VERSION: json.dumps(asdict(replace(version, storage_options={}))),
        _SECRETS: json.dumps(dict(version.storage_options)),
        _FILES: json.dumps([None] if files is None else list(_tasks(files))),
        _NEEDED: json.dumps(struct.fieldNames() if needed is None else sorted(needed)),
    }
    return spark.read.format(_FORMAT).schema(struct).options(**options).load()


def _register(spark: SparkSession) -> None:
    with _REGISTERING:
        if spark.conf.get(_REGISTERED, None) is None:
            with active_session(spark):
                spark.dataSource.register(_DeltaSource)
            spark.conf.set(_REGISTERED, "true")


@dataclass
class _Files(InputPartition):
    """Paths of the files of one task; None: the whole table. Spark adds a partition of no value to an empty plan."""

    value: tuple[str, ...] | None


class _DeltaSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return _FORMAT

    def reader(self, schema: StructType) -> DataSourceReader:
        # A session without such a table needs no delta-rs.
        from storage_lib.lakes.delta_table import DeltaVersion

        version = DeltaVersion(**json.loads(self.options[_VERSION]))
        version = replace(version, storage_options=json.loads(self.options[_SECRETS]))
        needed = {*json.loads(self.options[_NEEDED])}
        return _DeltaReader(version, json.loads(self.options[_FILES]), schema, needed)


class _DeltaReader(DataSourceReader):
    def __init__(
        self, version: DeltaVersion, tasks: Sequence[Sequence[str] | None], struct: StructType, needed: Collection[str]
    ) -> None:
        self._version = version
        self._tasks = tasks
        # A batch without columns would not tell its number of rows.
        self._needed = [name for name in struct.fieldNames() if name in needed] or struct.fieldNames()[:1]
        self._arrow_schema = arrow_schema_of(struct)

    def partitions(self) -> Sequence[InputPartition]:
        return [_Files(each if each is None else tuple(each)) for each in self._tasks] or [_Files(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        files = partition.value
        if files is not None and not files:
            return
        for batch in self._version.batches(self._needed, files):
            if batch.num_rows:
                yield conform(self._with_nulls(batch), self._arrow_schema, self._version.name)

    def _with_nulls(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with nulls in the columns that are not needed."""
        if len(self._needed) == len(self._arrow_schema):
            return batch
        columns = {
            field.name: batch.column(field.name) if field.name in self._needed else pa.nulls(batch.num_rows, field.type)
            for field in self._arrow_schema
        }
        return pa.RecordBatch.from_pydict(columns)


def _tasks(files: Sequence[tuple[str, int]]) -> Iterator[tuple[str, ...]]:
    """Combine small files into tasks."""
    task: list[str] = []
    size = 0
    for path, bytes_of_file in files:
        task.append(path)
        size += bytes_of_file
        if size >= _TASK_BYTES:
            yield tuple(task)
            task, size = [], 0
    if task:
        yield tuple(task)
