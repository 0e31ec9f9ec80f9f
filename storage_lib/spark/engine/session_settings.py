"""Settings of a Spark session by which expressions have other values than the usual ones, and sessions with others."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.value_settings import TIME_ZONE, USUAL, differing, unusual_value
from storage_lib.spark.tasks.session_kind import is_connect

if TYPE_CHECKING:
    from storage_lib.schema.options.value_settings import Settings

_VARIABLES = ("SPARK_REMOTE", "SPARK_API_MODE", "SPARK_CONNECT_MODE", "SPARK_ANSI_SQL_MODE")
"""Environment variables by which a session is a client of a server, or has another default of a setting."""
_ARGUMENTS = ("PYSPARK_SUBMIT_ARGS", "SPARK_SUBMIT_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")
_FILES = ("spark-defaults.conf", "spark-env.sh")
_WORDS = (*USUAL, *_VARIABLES, "--properties-file", "spark.api.mode", "spark.remote")


def settings_of(spark: SparkSession) -> Settings:
    """Return the settings of a session on which values depend, as they are stored."""
    return differing({name: value for name in (TIME_ZONE, *USUAL) if (value := _value(spark, name)) is not None})


def with_settings(spark: SparkSession, settings: Settings) -> SparkSession:
    """Return a session with stored settings: this one if it has them, else a copy, which no later SET changes.

    Raises ``InvalidInputError`` for a Spark Connect session with others, and for a value that Spark refuses.
    """
    now = settings_of(spark)
    return spark if now == settings else copy_with_settings(spark, settings)


def copy_with_settings(spark: SparkSession, settings: Settings) -> SparkSession:
    """Return a copy of a session, with its views and functions, and stored settings; raises as ``with_settings``."""
    now, wanted = dict(settings_of(spark)), dict(settings)
    if is_connect(spark):
        changed = sorted(name for name in {*now, *wanted} if now.get(name) != wanted.get(name))
        message = (
            f"the query was defined under other settings than this Spark Connect session has: {', '.join(changed)}. "
            "Set them, or use a classic session"
        )
        raise InvalidInputError(message)
    session: Any = spark._jsparkSession  # type: ignore[attr-defined, unused-ignore]  # noqa: SLF001  no public way
    copy = SparkSession(spark.sparkContext, session.cloneSession())
    if TIME_ZONE not in wanted:
        copy.conf.unset(TIME_ZONE)
    for name in {*now, *wanted}:
        value = wanted.get(name, USUAL.get(name))
        if value is None or value == now.get(name):
            continue
        try:
            copy.conf.set(name, value)
        except PySparkException as error:
            message = f"Spark refuses the stored setting {name} = {value}: {error}"
            raise InvalidInputError(message) from error
    return copy


def unusual_setting(spark: SparkSession) -> str | None:
    """Return which setting of a session gives expressions other values, or NULL in place of an error; None without one.

    They are other digits of sums, and other meanings of literals and names.
    """
    return "Spark Connect" if is_connect(spark) else unusual_value(settings_of(spark))


def unusual_configuration(master: str | None, conf: Mapping[str, str]) -> str | None:
    """Return the same for a session that ``storage_lib.spark.session`` would start with these arguments.

    It would also read files, environment variables and arguments, which are searched for the names of the settings, not
    for their values.
    """
    if (master or "").startswith("sc:"):
        return "Spark Connect"
    unusual = unusual_value(differing(conf))
    if unusual is not None:
        return unusual
    for name in _VARIABLES:
        if os.environ.get(name):
            return f"{name} is set"
    elsewhere = "\n".join([*(os.environ.get(name, "") for name in _ARGUMENTS), *map(_text_of, _FILES)])
    found = next((word for word in _WORDS if word in elsewhere), None)
    return None if found is None else f"{found} is configured"


def _value(spark: SparkSession, name: str) -> str | None:
    """Return a setting, or its default, which may come from the environment; None if this Spark does not know it."""
    try:
        return spark.conf.get(name)
    except PySparkException:
        return None


def _text_of(name: str) -> str:
    """Return the text of a file of Spark's configuration; nothing without one."""
    home = os.environ.get("SPARK_HOME") or str(Path(pyspark.__file__).parent)
    path = Path(os.environ.get("SPARK_CONF_DIR") or f"{home}/conf") / name
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
