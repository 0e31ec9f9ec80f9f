"""Parts of a table's rows as one data frame, safe from a defect of Spark's optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"
"""Setting of Spark: names of rules of its optimizer that are left out, with commas."""

UNSAFE_RULE = "org.apache.spark.sql.catalyst.optimizer.PushProjectionThroughUnion"
"""Spark 4.3.0 fails in this rule ("key not found") if a correlated sub-query is among the columns over a UNION ALL."""


def united(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of all frames, at least one, which have the same columns."""
    if len(frames) > 1:
        leave_out_unsafe_rule(frames[0].sparkSession)
    return reduce(lambda one, other: one.union(other), frames)


def leave_out_unsafe_rule(spark: SparkSession) -> None:
    """Leave ``UNSAFE_RULE`` out of the session's optimizer.

    Queries over a union then compute their columns above it; columns that they don't need are still not read.
    """
    left_out = spark.conf.get(EXCLUDED_RULES, None)
    rules = [each.strip() for each in (left_out or "").split(",") if each.strip()]
    if UNSAFE_RULE not in rules:
        spark.conf.set(EXCLUDED_RULES, ",".join([*rules, UNSAFE_RULE]))
