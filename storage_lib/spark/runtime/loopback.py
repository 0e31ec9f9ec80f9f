"""Settings that make Spark on a local master listen on loopback only: driver, block manager and, if enabled, the UI."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from pyspark import SparkConf, SparkContext

from storage_lib.errors import InvalidInputError

LOOPBACK = "127.0.0.1"
_LOCAL = re.compile(r"local(\[.*\])?")
_MASTER = "spark.master"
_UI = "spark.ui.enabled"
# The UI's address is not a setting: Spark reads it from the environment of its JVM.
_ADDRESS_VARIABLE = "SPARK_LOCAL_IP"


def loopback_settings(master: str | None, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that make a session listen on loopback; empty if the master is a cluster.

    Raises ``InvalidInputError`` if ``settings`` enable the UI in a running JVM that would serve it on every interface.
    """
    if _LOCAL.fullmatch(master or settings.get(_MASTER) or _configured_master(settings)) is None:
        return {}
    if settings.get(_UI) == "true":
        _bind_ui()
    return {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}


def _configured_master(settings: Mapping[str, str]) -> str:
    """Return the master from spark-defaults.conf or spark-submit. Starts Spark's JVM, which alone knows it."""
    running = SparkContext._active_spark_context  # noqa: SLF001  pyspark offers no other way
    if running is not None:
        return str(running.master)
    wanted = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    SparkContext._ensure_initialized(conf=wanted)  # noqa: SLF001  as SparkSession.builder does next
    return SparkConf(_jvm=SparkContext._jvm).get(_MASTER) or "local[*]"  # noqa: SLF001  likewise


def _bind_ui() -> None:
    if SparkContext._gateway is None:  # noqa: SLF001  no JVM yet
        os.environ.setdefault(_ADDRESS_VARIABLE, LOOPBACK)
        return
    jvm: Any = SparkContext._jvm  # noqa: SLF001  likewise
    if not (jvm.System.getenv(_ADDRESS_VARIABLE) or "").startswith("127."):
        message = (
            f"{_UI} is true, but the JVM of Spark runs already and would offer the UI on every interface; set the "
            f"variable {_ADDRESS_VARIABLE}={LOOPBACK} before this process starts Spark, or leave the UI off"
        )
        raise InvalidInputError(message)
