"""Spark's classes for streams in Python; where a version lacks them, classes of the same names.

* Limits of micro-batches, before Spark 4.2: older versions pass no limit, so our readers pass these to each other.
* The writer that gets Arrow batches, before Spark 4.1: Spark passes such batches to each writer that is also a batch
  writer of Arrow, whatever it writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.spark.versions.spark_feature import SparkFeature, installed_since

__all__ = [
    "DataSourceStreamArrowWriter",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxRows",
    "SupportsTriggerAvailableNow",
]

if TYPE_CHECKING or SparkFeature.ADMISSION_CONTROL.is_here:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
else:
    from dataclasses import dataclass

    class ReadLimit:
        """Limit of a micro-batch."""

    class ReadAllAvailable(ReadLimit):
        """No limit."""

    @dataclass
    class ReadMaxRows(ReadLimit):
        """At most this many rows."""

        max_rows: int

    class SupportsTriggerAvailableNow:
        """A reader that can fix its end."""


if TYPE_CHECKING or installed_since(4, 1):
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
else:
    from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter

    class DataSourceStreamArrowWriter(DataSourceStreamWriter, DataSourceArrowWriter):
        """Writer of a micro-batch whose tasks get Arrow batches."""
