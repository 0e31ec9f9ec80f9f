"""Data frames of the data source that are planned for each query, in place of once for all queries of the frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from storage_lib.spark.data_source import statement_options
from storage_lib.spark.java.driver_java import driver_object
from storage_lib.spark.tasks.active_session import active_session
from storage_lib.spark.tasks.session_kind import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


def fresh_frame(spark: SparkSession, struct: StructType | None, options: Mapping[str, str]) -> DataFrame:
    """Return the rows of the data source; ``struct`` None: with the columns that the source has for these options.

    Each scan keeps the filters of its own query, and reads the newest snapshot if ``options`` name none. Over Spark
    Connect, where the server plans the source once, no scan keeps a filter.
    """
    with active_session(spark):
        reader = spark.read.format(statement_options.SOURCE_NAME)
        if struct is not None:
            reader = reader.schema(struct)
        if is_connect(spark):
            return reader.options(**options).load()
        loaded = reader.options(**options, **{statement_options.OWN_SCANS: "true"}).load()
        scans = driver_object(spark, "FreshScans")
        return DataFrame(scans.of(spark._jsparkSession, loaded._jdf), spark)  # noqa: SLF001  pyspark has no public way
