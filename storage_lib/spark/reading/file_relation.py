"""A data frame over data files that are known by path and size, without listing directories.

``spark.read.parquet`` would ask the store about every file, and lose which columns are NOT NULL. So the relation is
built from the classes that Spark's JVM uses itself; a version of Spark counts as supported once the tests of native
reads have passed on it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StructField, StructType

from storage_lib.spark.java.driver_java import driver_object

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.spark.reading.native_columns import NativeColumn

_OPTIONS = {
    # Dates are proleptic Gregorian in the files of every writer (docs/format.md).
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "parquet.page.verify-checksum.enabled": "true",
    # A session may leave out what it can't read of other sources; here that would be a wrong answer.
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
}


ROW_POSITION = "_tmp_metadata_row_index"
"""The column by which Spark's reader of Parquet returns the position of a row in its file."""

FILE_BASE = "__native_file_base"

_POSITION_FIELD = StructField(ROW_POSITION, LongType())


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
class LeftOutBits:
    """Bits of the rows of all files, as words of 64 rows; ``bases`` are the places of the files' first bits."""

    bits: bytes
    bases: Sequence[int]


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
    *,
    left_out: LeftOutBits | None = None,
    condition: str | None = None,
    columns: Sequence[NativeColumn] | None = None,
) -> DataFrame:
    """Return the rows of Parquet or ORC files: the columns of ``struct``, then those of ``partitions``.

    Columns that a file lacks are null. ``options`` are Hadoop's. Rows of ``left_out``, of Parquet files only, and those
    for which ``condition`` (SQL) is not true are left out. ``columns`` are the result's columns, if they are others;
    with ``left_out`` they are required.
    """
    described = {
        "extension": extension,
        "schema": (struct if left_out is None else StructType([*struct.fields, _POSITION_FIELD])).jsonValue(),
        "options": _OPTIONS | dict(options),
        "paths": [file.path for file in files],
        "sizes": [file.size_bytes for file in files],
        "bases": None if left_out is None else left_out.bases,
        "base": FILE_BASE,
        "position": ROW_POSITION,
        "condition": condition,
        "columns": None if columns is None else [each.description() for each in columns],
    }
    rows = None
    if partitions is not None:
        described["partitions"] = {"schema": partitions.struct.jsonValue(), "directories": partitions.of_directory}
        # Spark converts the values to its own rows.
        rows = spark.createDataFrame(partitions.rows, partitions.struct)._jdf  # noqa: SLF001
    relations = driver_object(spark, "FileRelations")
    bits = None if left_out is None else left_out.bits
    return DataFrame(relations.rows(spark._jsparkSession, json.dumps(described), rows, bits), spark)  # noqa: SLF001
