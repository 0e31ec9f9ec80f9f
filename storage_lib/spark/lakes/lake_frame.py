"""A version of a table of another format as a data frame, read by Python tasks.

The connectors of Delta Lake and Iceberg end at Spark 4.2 and 4.1.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

from storage_lib.lakes.lake_kinds import version_class
from storage_lib.spark.tasks.active_session import active_session
from storage_lib.spark.types.spark_schema import arrow_schema_of, conform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from storage_lib.lakes.lake_version import LakeVersion
    from storage_lib.schema.filter.predicate import Predicate

_FORMAT = "dynamic_table_lake_version"
_KIND, _VERSION, _FILES, _NEEDED = "kind", "version", "files", "needed"
_SECRETS = "storage-secrets"
"""Spark shows no value of an option whose name has this word."""
_REGISTERED = "dynamic_table.lake_registered"
_REGISTERING = threading.Lock()
_TASK_BYTES = 64 * 1024 * 1024


def lake_struct(version: LakeVersion) -> StructType:
    """Return the columns of a version as a struct of Spark."""
    return from_arrow_schema(version.schema(), prefer_timestamp_ntz=True)


def lake_frame(
    spark: SparkSession,
    version: LakeVersion,
    struct: StructType,
    *,
    needed: Collection[str] | None = None,
    predicate: Predicate | None = None,
    only: Sequence[tuple[str, int]] | None = None,
) -> DataFrame:
    """Return some columns of a version, lazily. ``struct`` is a part of ``lake_struct``.

    Columns that are not ``needed`` (None: all are) are null. Files without a row that ``predicate`` may hold for are
    left out; the rows still have to be filtered. ``only`` these files (see ``LakeVersion.files``) are read, if it is
    given.
    """
    _register(spark)
    files = version.files(predicate) if only is None else only
    options = {
        _KIND: version.KIND,
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
                spark.dataSource.register(_LakeSource)
            spark.conf.set(_REGISTERED, "true")


@dataclass
class _Part(InputPartition):
    """Rows of one task: a part of the version, or with ``is_whole`` all; with neither none."""

    value: object = None
    is_whole: bool = False


class _LakeSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return _FORMAT

    def reader(self, schema: StructType) -> DataSourceReader:
        version = version_class(self.options[_KIND])(**json.loads(self.options[_VERSION]))
        version = replace(version, storage_options=json.loads(self.options[_SECRETS]))
        needed = {*json.loads(self.options[_NEEDED])}
        return _LakeReader(version, json.loads(self.options[_FILES]), schema, needed)


class _LakeReader(DataSourceReader):
    def __init__(
        self, version: LakeVersion, tasks: Sequence[Sequence[str] | None], struct: StructType, needed: Collection[str]
    ) -> None:
        self._version = version
        self._tasks = tasks
        # A batch without columns would not tell its number of rows.
        self._needed = [name for name in struct.fieldNames() if name in needed] or struct.fieldNames()[:1]
        self._arrow_schema = arrow_schema_of(struct)

    def partitions(self) -> Sequence[InputPartition]:
        if None in self._tasks:
            return [_Part(is_whole=True)]
        # Spark adds a partition of no value to an empty plan.
        return [*map(_Part, self._version.parts([each for each in self._tasks if each is not None]))] or [_Part()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        part = cast("_Part", partition)
        if part.value is None and not part.is_whole:
            return
        for batch in self._version.batches(self._needed, part.value):
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
