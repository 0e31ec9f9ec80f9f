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
_VARIABLES = ("SPARK_REMOTE", "SPARK_API_MODE", "SPARK_CONNECT_MODE", "SPARK_ANSI_SQL_MODE")
"""Environment variables by which a session is a client of a server, or has another default of a setting."""
_ARGUMENTS = ("PYSPARK_SUBMIT_ARGS", "SPARK_SUBMIT_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")
_FILES = ("spark-defaults.conf", "spark-env.sh")
_WORDS = (*_USUAL, *_VARIABLES, "--properties-file", "spark.api.mode", "spark.remote")


def unusual_setting(spark: SparkSession) -> str | None:
    """Return which setting of a session gives expressions other values, or NULL in place of an error; None without one.

    They are other digits of sums, and other meanings of literals and names.
    """
    if is_connect(spark):
        return "Spark Connect"
    for setting, usual in _USUAL.items():
        # Without a default, because Spark's own may come from the environment.
        if (spark.conf.get(setting) or usual).lower() != usual:
            return f"{setting} is not {usual}"
    return None


def unusual_configuration(master: str | None, conf: Mapping[str, str]) -> str | None:
    """Return the same for a session that ``storage_lib.spark.session`` would start with these arguments.

    It would also read files, environment variables and arguments, which are searched for the names of the settings, not
    for their values.
    """
    if (master or "").startswith("sc:"):
        return "Spark Connect"
    for setting, usual in _USUAL.items():
        if conf.get(setting, usual).lower() != usual:
            return f"{setting} is not {usual}"
    for name in _VARIABLES:
        if os.environ.get(name):
            return f"{name} is set"
    elsewhere = "\n".join([*(os.environ.get(name, "") for name in _ARGUMENTS), *map(_text_of, _FILES)])
    found = next((word for word in _WORDS if word in elsewhere), None)
    return None if found is None else f"{found} is configured"


def _text_of(name: str) -> str:
    """Return the text of a file of Spark's configuration; nothing without one."""
    home = os.environ.get("SPARK_HOME") or str(Path(pyspark.__file__).parent)
    path = Path(os.environ.get("SPARK_CONF_DIR") or f"{home}/conf") / name
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
