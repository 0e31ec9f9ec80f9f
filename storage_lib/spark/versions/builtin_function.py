"""The identifier of one of Spark's own functions in a session's registry; before Spark 4.2 it is a bare name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from storage_lib.spark.versions.spark_feature import installed_since

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["builtin_function"]


def builtin_function(spark: SparkSession, name: str) -> Any:
    """Return the JVM's ``FunctionIdentifier`` of the function ``name`` of Spark, such as ``reflect``."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001  Spark offers no other way
    identifier = jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
    if not installed_since(4, 2):
        return identifier(name)
    some = jvm.scala.Option.apply
    return identifier(name, some("builtin"), some("system"))
