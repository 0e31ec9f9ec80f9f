"""Parts that only some versions of Spark have: tests that need them are skipped on others, naming the version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from storage_lib.spark.versions.spark_feature import SparkFeature

__all__ = ["needs_spark", "rows_limit"]


def needs_spark(feature: SparkFeature) -> pytest.MarkDecorator:
    """Mark tests of what a version of Spark may lack."""
    return pytest.mark.skipif(not feature.is_here, reason=f"{feature.purpose} needs Spark {feature.since}")


def rows_limit(rows: int) -> int | None:
    """Return a limit of the rows of a micro-batch for ``rows_per_trigger_max``; none where Spark has no such limit.

    For tests in which smaller micro-batches only make more cases.
    """
    from storage_lib.spark.versions.spark_feature import SparkFeature

    return rows if SparkFeature.ADMISSION_CONTROL.is_here else None
