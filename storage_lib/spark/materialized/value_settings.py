"""Settings of a Spark session by which expressions have other values than the usual ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.spark.tasks.session_kind import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_USUAL = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
    "spark.sql.caseSensitive": "false",
}


def unusual_setting(spark: SparkSession) -> str | None:
    """Return which setting of a session gives expressions other values, or NULL in place of an error; None without one.

    They are other digits of sums, and other meanings of literals and names.
    """
    if is_connect(spark):
        return "Spark Connect"
    for setting, usual in _USUAL.items():
        if (spark.conf.get(setting, usual) or usual).lower() != usual:
            return f"{setting} is not {usual}"
    return None
