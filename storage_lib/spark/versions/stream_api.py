"""Spark's classes for limits of micro-batches; before Spark 4.2, which lacks them, classes of the same names.

Older versions pass no limit, so our readers pass these to each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.spark.versions.spark_feature import SparkFeature

__all__ = ["ReadAllAvailable", "ReadLimit", "ReadMaxRows", "SupportsTriggerAvailableNow"]

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
