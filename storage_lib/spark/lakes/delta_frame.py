"""A version of a table of Delta Lake as a data frame, read by Python tasks: Delta's own connector ends at Spark 4.2."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

from storage_lib.lakes.delta_table import DeltaVersion
from storage_lib.spark.tasks.active_session import active_session
from storage_lib.spark.types.spark_schema import arrow_schema_of, conform

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_FORMAT = "dynamic_table_delta_version"
_VERSION = "version"
_REGISTERED = "dynamic_table.delta_registered"
_REGISTERING = threading.Lock()
_TASK_BYTES = 64 * 1024 * 1024


def delta_struct(version: DeltaVersion) -> StructType:
    """Return the columns of a version as a struct of Spark."""
    return from_arrow_schema(version.schema(), prefer_timestamp_ntz=True)


def delta_frame(spark: SparkSession, version: DeltaVersion, struct: StructType) -> DataFrame:
    """Return some columns of a version, lazily. ``struct`` is a part of ``delta_struct``."""
    _register(spark)
    return spark.read.format(_FORMAT).schema(struct).option(_VERSION, json.dumps(asdict(version))).load()


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
        return _DeltaReader(DeltaVersion(**json.loads(self.options[_VERSION])), schema)


class _DeltaReader(DataSourceReader):
    def __init__(self, version: DeltaVersion, struct: StructType) -> None:
        self._version = version
        self._columns = struct.fieldNames()
        self._arrow_schema = arrow_schema_of(struct)

    def partitions(self) -> Sequence[InputPartition]:
        files = self._version.files()
        return [_Files(None)] if files is None else [_Files(each) for each in _tasks(files)] or [_Files(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        files = partition.value
        if files is not None and not files:
            return
        for batch in self._version.batches(self._columns, files):
            if batch.num_rows:
                yield conform(batch, self._arrow_schema, self._version.name)


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
