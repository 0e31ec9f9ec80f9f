"""Settings of a Spark session by which expressions have other values than the usual ones."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

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


def unusual_configuration(master: str | None, conf: Mapping[str, str]) -> str | None:
    """Return the same for a session that ``storage_lib.spark.session`` would start with these arguments.

    It would also have the settings of ``spark-defaults.conf`` and ``PYSPARK_SUBMIT_ARGS``, which are searched for the
    names of the settings only.
    """
    if (master or "").startswith("sc:") or (master is None and os.environ.get("SPARK_REMOTE")):
        return "Spark Connect"
    elsewhere = os.environ.get("PYSPARK_SUBMIT_ARGS", "") + _defaults()
    for setting, usual in _USUAL.items():
        if conf.get(setting, usual).lower() != usual:
            return f"{setting} is not {usual}"
        if setting in elsewhere:
            return f"{setting} is configured"
    return None


def _defaults() -> str:
    home = os.environ.get("SPARK_HOME") or str(Path(pyspark.__file__).parent)
    path = Path(os.environ.get("SPARK_CONF_DIR") or f"{home}/conf") / "spark-defaults.conf"
    return path.read_text(encoding="utf-8") if path.exists() else ""
