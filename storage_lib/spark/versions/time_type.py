"""Spark's type TIME; before Spark 4.1, which lacks it, a type that no column has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.spark.versions.spark_feature import installed_since

__all__ = ["TimeType"]

if TYPE_CHECKING or installed_since(4, 1):
    from pyspark.sql.types import TimeType
else:
    from pyspark.sql.types import AtomicType

    class TimeType(AtomicType):
        """The type of no column here."""

        def __init__(self, precision: int = 6) -> None:
            self.precision = precision
