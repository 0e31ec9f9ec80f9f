"""Settings of a Spark session by which expressions have other values than the usual ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.spark.tasks.session_kind import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_USUAL = ("spark.sql.ansi.enabled", "spark.sql.decimalOperations.allowPrecisionLoss")


def unusual_setting(spark: SparkSession) -> str | None:
    """Return which setting of a session gives sums other digits, or NULL in place of an error; None without one."""
    if is_connect(spark):
        return "Spark Connect"
    for setting in _USUAL:
        if (spark.conf.get(setting, "true") or "true").lower() != "true":
            return f"{setting} is false"
    return None
