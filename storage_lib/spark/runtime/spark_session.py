"""A Spark session with the connector's settings: this Python for the workers, pushdown, and two scheduler pools.

On a local master, Spark listens on loopback only, and its scratch files are private to the user.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.resources import as_file, files

from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.secret_text import secret_text_pattern
from storage_lib.schema.options.table_options import secret_pattern
from storage_lib.spark.data_source.table_source import register
from storage_lib.spark.reading.native_columns import EXACT_TIMES
from storage_lib.spark.runtime.loopback import loopback_settings
from storage_lib.spark.runtime.scratch_directory import LOCAL_DIR, private_scratch_directory
from storage_lib.spark.runtime.spark_java import REMEDY, java_problem
from storage_lib.spark.runtime.warm_python import can_fork, warm_python
from storage_lib.spark.tasks.session_kind import is_connect

STREAM_POOL = "dynamic-table-stream"
MAINTENANCE_POOL = "dynamic-table-maintenance"
_PYTHON = "PYSPARK_PYTHON"
_PYTHON_SETTINGS = ("spark.pyspark.python", "spark.pyspark.driver.python")
_NO_JVM = "JAVA_GATEWAY_EXITED"
_POOL_PROPERTY = "spark.scheduler.pool"

_SETTINGS = {
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.timeType.enabled": "true",
    # Conditions on dates and times can skip row groups only if Spark converts them exactly.
    EXACT_TIMES: "true",
    "spark.scheduler.mode": "FAIR",
    "spark.ui.enabled": "false",
    # Error messages of queries contain the plan, which contains the options of the sources.
    "spark.redaction.regex": secret_pattern(),
    "spark.redaction.string.regex": secret_text_pattern(),
    "spark.sql.redaction.options.regex": f"{secret_pattern()}|url|uri",
}
_POOLS = "spark.scheduler.allocation.file"
_LOCAL_SETTINGS = {
    # On a cluster, the machines may receive this library only with the job, too late for their daemon.
    "spark.python.daemon.module": "storage_lib.spark.runtime.warm_daemon",
}


def session(
    app_name: str = "dynamic tables", *, master: str | None = None, conf: Mapping[str, str] | None = None
) -> SparkSession:
    """Return the running Spark session, or start one, with the data source ``dynamic_table`` registered.

    ``master`` defaults to Spark's configuration, or else all local cores. With a local ``master``, Python's processes
    are forked from ones that have imported (``warm_python``, ``warm_daemon``), Spark listens on loopback only
    (``loopback``), and ``spark.local.dir`` is a private directory unless one is configured (``scratch_directory``).
    ``conf`` overrides these settings, and ``PYSPARK_PYTHON`` the Python.

    With ``SPARK_REMOTE`` set and no ``master``, the session is a client of that Spark Connect server, and only the
    settings of SQL apply.

    Raises ``InvalidInputError`` if Spark finds no suitable Java.
    """
    try:
        return _session(app_name, master, conf or {})
    except PySparkRuntimeError as error:
        if error.getCondition() != _NO_JVM:
            raise
        problem = java_problem() or "its Java process has ended; what it wrote to standard error says why"
        message = f"Spark did not start: {problem}. {REMEDY}"
        raise InvalidInputError(message) from error


def _session(app_name: str, master: str | None, conf: Mapping[str, str]) -> SparkSession:
    with _python_of_workers(master, conf):
        return _built(app_name, master, conf)


@contextmanager
def _python_of_workers(master: str | None, conf: Mapping[str, str]) -> Iterator[None]:
    """Let the session that the body starts use the driver's interpreter, not the first python3 on PATH.

    On a local master it is the launcher of one that has imported. Other processes that this one starts do not get the
    launcher, which ends with this one.
    """
    chosen = os.environ.setdefault(_PYTHON, sys.executable)
    is_ours = chosen == sys.executable and not any(each in conf for each in _PYTHON_SETTINGS)
    is_new = SparkContext._active_spark_context is None  # noqa: SLF001  no other way
    if is_ours and is_new and (master or "").startswith("local") and can_fork():
        with suppress(OSError):
            os.environ[_PYTHON] = warm_python()
    try:
        yield
    finally:
        os.environ[_PYTHON] = chosen


def _built(app_name: str, master: str | None, conf: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder.appName(app_name)
    if master is None and os.environ.get("SPARK_REMOTE"):
        of_sql = {key: value for key, value in _SETTINGS.items() if key.startswith("spark.sql.")}
        return _started(builder, {**of_sql, **conf})
    if master is not None:
        builder = builder.master(master)
    ours = _SETTINGS | _LOCAL_SETTINGS if (master or "").startswith("local") else _SETTINGS
    # With --py-files, this module is in a zip file. Spark reads its file once, when it starts.
    with as_file(files(__package__).joinpath("scheduler_pools.xml")) as pools:
        ours = {**ours, _POOLS: pools.as_uri()}
        return _started(builder, {**ours, **_of_a_local_master(master, {**ours, **conf}), **conf})


def _started(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession:
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark


def _of_a_local_master(master: str | None, settings: Mapping[str, str]) -> dict[str, str]:
    bound = loopback_settings(master, settings)
    directory = private_scratch_directory(settings) if bound else None
    return bound if directory is None else {**bound, LOCAL_DIR: directory}


@contextmanager
def scheduler_pool(spark: SparkSession, pool: str) -> Iterator[None]:
    """Assign the jobs and queries that this thread starts in the body to the scheduler pool ``pool``.

    Has no effect over Spark Connect.
    """
    if is_connect(spark):
        # The pool is a property of a thread in the server.
        yield
        return
    context = spark.sparkContext
    before = context.getLocalProperty(_POOL_PROPERTY)
    context.setLocalProperty(_POOL_PROPERTY, pool)
    try:
        yield
    finally:
        # pyspark accepts None as "unset", although its annotation does not allow it.
        context.setLocalProperty(_POOL_PROPERTY, before)  # type: ignore[arg-type, unused-ignore]
