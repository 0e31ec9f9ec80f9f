"""A data frame over data files that are known by path and size, without listing directories.

``spark.read.parquet`` would ask the store about every file, and lose which columns are NOT NULL. So the relation is
built from the classes that Spark's JVM uses itself (pyspark's version is pinned).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_HANDED_OVER_MAX = 2_000
"""Files whose sizes are passed to the JVM one by one, which takes 0.4 ms each. For more, a job asks the store."""
_BLOCK_BYTES = 128 * 1024 * 1024
_SEPARATOR = "\0"
_OPTIONS = {
    # Dates are proleptic Gregorian in every file, whoever wrote it (docs/format.md).
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "parquet.page.verify-checksum.enabled": "true",
}


@dataclass(frozen=True, slots=True)
class StoredFile:
    """``path`` is a path of Hadoop's, with its scheme and without escapes."""

    path: str
    size_bytes: int


def relation_of(
    spark: SparkSession, files: Sequence[StoredFile], struct: StructType, extension: str, options: Mapping[str, str]
) -> DataFrame:
    """Return the rows of Parquet or ORC files that all have the columns of ``struct``; ``options`` are Hadoop's."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001  pyspark has no public way to the JVM
    java_session = spark._jsparkSession  # noqa: SLF001
    sources = jvm.org.apache.spark.sql.execution.datasources
    nothing = jvm.scala.Option.empty()
    schema = java_session.parseDataType(struct.json())
    settings = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(dict(_OPTIONS) | dict(options))
    index = _file_index(spark, jvm, files, schema, settings)
    format_ = sources.parquet.ParquetFileFormat() if extension == "parquet" else sources.orc.OrcFileFormat()
    no_columns = jvm.org.apache.spark.sql.types.StructType()
    relation = sources.HadoopFsRelation(index, no_columns, schema, nothing, format_, settings, java_session)
    return DataFrame(java_session.baseRelationToDataFrame(relation), spark)


def _file_index(spark: SparkSession, jvm: Any, files: Sequence[StoredFile], schema: Any, settings: Any) -> Any:
    java_session = spark._jsparkSession  # noqa: SLF001
    sources = jvm.org.apache.spark.sql.execution.datasources
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
    cache = sources.FileStatusCache.getOrCreate(java_session)
    joined = _SEPARATOR.join(each.path for each in files)
    texts = (
        jvm.java.util.regex.Pattern.compile(_SEPARATOR).split(joined)
        if files
        else gateway.new_array(jvm.java.lang.String, 0)
    )
    paths = jvm.org.apache.hadoop.util.StringUtils.stringToPath(texts)
    if len(files) <= _HANDED_OVER_MAX:
        status_of = jvm.org.apache.hadoop.fs.FileStatus
        for place, file in enumerate(files):
            status = gateway.new_array(status_of, 1)
            path = paths[place]
            status[0] = status_of(file.size_bytes, False, 1, _BLOCK_BYTES, 0, path)
            cache.putLeafFiles(path, status)
    roots = jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray(paths)
    nothing = jvm.scala.Option.empty()
    index = sources.InMemoryFileIndex(
        java_session, roots, settings, jvm.scala.Option.apply(schema), cache, nothing, nothing
    )
    # The index has its files by now; the session-wide cache would keep them for as long as it has room.
    cache.invalidateAll()
    return index
