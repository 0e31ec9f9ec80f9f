"""Rows that have to be merged, read by Python tasks that are planned here rather than by the data source.

If the columns and conditions of a query are known, Spark has nothing to tell a data source, and starting one costs
two Python processes for each table of a query. Spark also learns the size of the files, by which it plans joins; of a
Python data source it assumes that it is larger than any other table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame

from storage_lib.catalog.table_cache import TableKey
from storage_lib.errors import InvalidInputError
from storage_lib.spark.types.spark_schema import arrow_schema_of, conform
from storage_lib.spark.versions.jvm_constructor import parameter_count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from storage_lib.file_store.split import Split
    from storage_lib.schema.filter.predicate import Predicate

_FILES_MAX = 2_000
_LOGICAL_RDD = "org.apache.spark.sql.execution.LogicalRDD"
_PARAMETERS = (9, 10)
"""Parameters of the class up to Spark 4.2, and since Spark 4.3, whose additional one is the last."""
_OVERHEAD_BYTES = 8
_NUMBER_BYTES = 8
"""Spark's estimates of a row's header and of a BIGINT, from which it derives the size of a projection."""


@dataclass(frozen=True, slots=True)
class MergeTasks:
    """``splits`` by task. ``predicate`` holds for every row that matters; other rows may be left out."""

    key: TableKey
    splits: tuple[tuple[Split, ...], ...]
    columns: tuple[str, ...]
    predicate: Predicate | None
    arrow_schema: pa.Schema

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the tasks with these numbers; each Spark task receives one."""
        table = self.key.table()
        read = table.new_read(columns=self.columns, filter=self.predicate)
        for each in numbers:
            for number in each.column(0).to_pylist():
                for split in self.splits[number]:
                    for batch in read.read_split(split):
                        if batch.num_rows:
                            yield conform(batch, self.arrow_schema, table.name)


def are_few(splits: Sequence[Sequence[Split]]) -> bool:
    """Return whether all splits can be sent to every task, as ``frame_of_tasks`` does."""
    return sum(len(split.files) for task in splits for split in task) <= _FILES_MAX


def frame_of_tasks(
    spark: SparkSession,
    key: TableKey,
    splits: Sequence[tuple[Split, ...]],
    struct: StructType,
    predicate: Predicate | None,
    size_bytes: int,
) -> DataFrame:
    """Return the rows of the splits with the columns of ``struct``; Spark takes them to have ``size_bytes``."""
    tasks = MergeTasks(key, tuple(splits), tuple(struct.fieldNames()), predicate, arrow_schema_of(struct))
    schema: Any = spark._jsparkSession.parseDataType(struct.json())  # noqa: SLF001  pyspark has no public way
    row_bytes = _OVERHEAD_BYTES + int(schema.defaultSize())
    numbers_bytes = max(1, size_bytes * (_OVERHEAD_BYTES + _NUMBER_BYTES) // row_bytes)
    return _numbers(spark, len(splits), numbers_bytes).mapInArrow(tasks, struct)  # type: ignore[arg-type, unused-ignore]


def _numbers(spark: SparkSession, count: int, size_bytes: int) -> DataFrame:
    """Return the numbers below ``count``, each in a partition of its own, with this size in Spark's statistics."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001  pyspark has no public way to the JVM
    java_session = spark._jsparkSession  # noqa: SLF001
    query = spark.range(0, count, 1, count)._jdf.queryExecution()  # noqa: SLF001
    catalyst = jvm.org.apache.spark.sql.catalyst
    nothing = jvm.scala.Option.empty()
    # py4j can't pass a BigInt of Scala, so the statistics are those of a range of this size.
    like = spark.range(size_bytes // _NUMBER_BYTES + 1)
    statistics = like._jdf.queryExecution().analyzed().stats()  # noqa: SLF001
    arguments = (
        query.analyzed().output(),
        query.toRdd(),
        catalyst.plans.physical.UnknownPartitioning(count),
        jvm.org.apache.spark.api.python.PythonUtils.toSeq(jvm.java.util.ArrayList()).toList(),
        False,
        nothing,
        java_session,
        jvm.scala.Option.apply(statistics),
        nothing,
        False,
    )
    count = parameter_count(spark.sparkContext._gateway, _LOGICAL_RDD)  # noqa: SLF001
    if count not in _PARAMETERS:
        message = (
            f"this Spark {spark.version} makes {_LOGICAL_RDD} of {count} parameters, and {_PARAMETERS[0]} or "
            f"{_PARAMETERS[-1]} are known. Use Apache Spark's own build, or report it"
        )
        raise InvalidInputError(message)
    relation = jvm.org.apache.spark.sql.execution.LogicalRDD(*arguments[:count])
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(java_session, relation), spark)
