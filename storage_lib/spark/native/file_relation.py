"""A data frame over data files that are known by path and size, without listing directories.

``spark.read.parquet`` would ask the store about every file, and lose which columns are NOT NULL. So the relation is
built from the classes that Spark's JVM uses itself (pyspark's version is pinned).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

HANDED_OVER_MAX = 2_000
"""Files whose sizes are passed to the JVM one by one, which takes 0.4 ms each. For more, a job asks the store."""
_BLOCK_BYTES = 128 * 1024 * 1024
_SEPARATOR = "\0"
_OPTIONS = {
    # Dates are proleptic Gregorian in the files of every writer (docs/format.md).
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "parquet.page.verify-checksum.enabled": "true",
    # A session may leave out what it can't read of other sources; here that would be a wrong answer.
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
}


@dataclass(frozen=True, slots=True)
class StoredFile:
    """``path`` is a path of Hadoop's, with its scheme and without escapes."""

    path: str
    size_bytes: int

    @property
    def directory(self) -> str:
        """The path of the file's directory."""
        return self.path.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class PartitionValues:
    """Values of partition columns, by which Spark skips whole directories, also during a join.

    ``rows`` has one row for each partition, with the columns of ``struct``; ``of_directory`` are numbers of rows.
    """

    struct: StructType
    rows: pa.Table
    of_directory: Mapping[str, int]


def relation_of(
    spark: SparkSession,
    files: Sequence[StoredFile],
    struct: StructType,
    extension: str,
    options: Mapping[str, str],
    partitions: PartitionValues | None = None,
) -> DataFrame:
    """Return the rows of Parquet or ORC files: the columns of ``struct``, then those of ``partitions``.

    Columns that a file lacks are null. ``options`` are Hadoop's.
    """
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001  pyspark has no public way to the JVM
    java_session = spark._jsparkSession  # noqa: SLF001
    sources = jvm.org.apache.spark.sql.execution.datasources
    nothing = jvm.scala.Option.empty()
    schema = java_session.parseDataType(struct.json())
    settings = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(dict(_OPTIONS) | dict(options))
    if partitions is None:
        of_partitions, spec = jvm.org.apache.spark.sql.types.StructType(), nothing
    else:
        of_partitions = java_session.parseDataType(partitions.struct.json())
        spec = jvm.scala.Option.apply(_partition_spec(spark, jvm, partitions, of_partitions))
    index = _file_index(spark, jvm, files, schema, settings, spec)
    format_ = sources.parquet.ParquetFileFormat() if extension == "parquet" else sources.orc.OrcFileFormat()
    relation = sources.HadoopFsRelation(index, of_partitions, schema, nothing, format_, settings, java_session)
    return DataFrame(java_session.baseRelationToDataFrame(relation), spark)


def _file_index(
    spark: SparkSession, jvm: Any, files: Sequence[StoredFile], schema: Any, settings: Any, partition_spec: Any
) -> Any:
    java_session = spark._jsparkSession  # noqa: SLF001
    sources = jvm.org.apache.spark.sql.execution.datasources
    cache = sources.FileStatusCache.getOrCreate(java_session)
    paths = _paths(spark, jvm, [each.path for each in files])
    if len(files) <= HANDED_OVER_MAX:
        status_of = jvm.org.apache.hadoop.fs.FileStatus
        for place, file in enumerate(files):
            status = _new_array(spark, status_of, 1)
            path = paths[place]
            status[0] = status_of(file.size_bytes, False, 1, _BLOCK_BYTES, 0, path)
            cache.putLeafFiles(path, status)
    roots = jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray(paths)
    nothing = jvm.scala.Option.empty()
    index = sources.InMemoryFileIndex(
        java_session, roots, settings, jvm.scala.Option.apply(schema), cache, partition_spec, nothing
    )
    # The index has its files by now; the session-wide cache would keep them for as long as it has room.
    cache.invalidateAll()
    return index


def _partition_spec(spark: SparkSession, jvm: Any, partitions: PartitionValues, struct: Any) -> Any:
    sources = jvm.org.apache.spark.sql.execution.datasources
    # Spark converts the values to its own rows; a local relation is collected without a job.
    local = spark.createDataFrame(partitions.rows, partitions.struct)
    rows = local._jdf.queryExecution().executedPlan().executeCollect()  # noqa: SLF001
    copies = [rows[place].copy() for place in range(partitions.rows.num_rows)]
    directories = list(partitions.of_directory)
    paths = _paths(spark, jvm, directories)
    found = jvm.java.util.ArrayList()
    for place, directory in enumerate(directories):
        found.add(sources.PartitionPath(copies[partitions.of_directory[directory]], paths[place]))
    return sources.PartitionSpec(struct, jvm.org.apache.spark.api.python.PythonUtils.toSeq(found).toList())


def _paths(spark: SparkSession, jvm: Any, texts: Sequence[str]) -> Any:
    """Return an array of Hadoop's paths, made by a few calls however many there are."""
    if not texts:
        return _new_array(spark, jvm.org.apache.hadoop.fs.Path, 0)
    split = jvm.java.util.regex.Pattern.compile(_SEPARATOR).split(_SEPARATOR.join(texts))
    return jvm.org.apache.hadoop.util.StringUtils.stringToPath(split)


def _new_array(spark: SparkSession, of: Any, size: int) -> Any:
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
    return gateway.new_array(of, size)
