"""Relations over files of known size: Spark does not ask the store about them, however many there are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import LongType, StringType, StructField, StructType

from storage_lib.spark.reading.file_relation import PartitionValues, StoredFile, relation_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CACHES_STATUSES = "spark.sql.hive.manageFilesourcePartitions"
FILES = 2_500
ID = StructType([StructField("id", LongType())])


@pytest.mark.parametrize("caches", ["true", "false"])
def test_thousands_of_files_that_do_not_exist_are_planned_without_a_look_at_the_store(
    spark: SparkSession, tmp_path: Path, caches: str
) -> None:
    files = [StoredFile(f"file:{tmp_path}/p={number % 50}/{number}.parquet", 1000) for number in range(FILES)]

    spark.conf.set(CACHES_STATUSES, caches)
    try:
        df = relation_of(spark, files, ID, "parquet", {})
        df._jdf.queryExecution().executedPlan()  # no public way to plan without a job
    finally:
        spark.conf.unset(CACHES_STATUSES)

    assert len(df.inputFiles()) == FILES
    assert df._jdf.queryExecution().optimizedPlan().stats().sizeInBytes() == 1000 * FILES


def test_thousands_of_directories_are_partitions_of_the_relation(spark: SparkSession, tmp_path: Path) -> None:
    files = [StoredFile(f"file:{tmp_path}/p={number}/data.parquet", 1000) for number in range(FILES)]
    values = PartitionValues(
        StructType([StructField("p", StringType())]),
        pa.table({"p": [str(number) for number in range(FILES)]}),
        {file.directory: number for number, file in enumerate(files)},
    )

    wanted = relation_of(spark, files, ID, "parquet", {}, values).where("p IN ('7', '1700')")

    plan = wanted._jdf.queryExecution().executedPlan()
    scan = plan.collectLeaves().apply(0)
    assert scan.selectedPartitions().totalNumberOfFiles() == 2
