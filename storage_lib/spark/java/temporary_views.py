"""Temporary views of Spark for the tables of one statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from storage_lib.spark.java.driver_java import driver_object

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def create_view(df: DataFrame, name: str) -> None:
    """Create a view of the rows; ``name`` is new, and consists of letters, digits and underscores."""
    spark = df.sparkSession
    driver_object(spark, "TemporaryViews").create(spark._jsparkSession, name, df._jdf)  # noqa: SLF001  no public way


def drop_views(spark: SparkSession, names: Sequence[str]) -> None:
    """Drop views of ``create_view``; without names, do nothing."""
    if names:
        driver_object(spark, "TemporaryViews").drop(spark._jsparkSession, ",".join(names))  # noqa: SLF001  likewise
