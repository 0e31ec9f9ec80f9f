"""Spark on a local master listens on loopback: its driver, its block manager and, where it is switched on, its UI."""

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
# The UI's address is not a setting: Spark takes it from the environment in which its JVM was started.
_ADDRESS_VARIABLE = "SPARK_LOCAL_IP"


def loopback_settings(master: str | None, settings: Mapping[str, str]) -> dict[str, str]:
    """The settings by which a session with these ``settings`` listens on loopback; none for a cluster's master.

    ``InvalidInputError`` if the UI is switched on in a JVM that would offer it on every interface.
    """
    if _LOCAL.fullmatch(master or settings.get(_MASTER) or _configured_master(settings)) is None:
        return {}
    if settings.get(_UI) == "true":
        _bind_ui()
    return {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}


def _configured_master(settings: Mapping[str, str]) -> str:
    """What spark-defaults.conf or spark-submit says. Only Spark's JVM knows, which is started by this."""
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
