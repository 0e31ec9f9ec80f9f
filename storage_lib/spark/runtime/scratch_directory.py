"""Private scratch directory for Spark on a local master, because its scratch files contain rows.

Spark creates blocks, shuffle files and state with the mode of the umask, usually readable by all users of the machine.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from typing import Any

from pyspark import SparkConf, SparkContext

LOCAL_DIR = "spark.local.dir"
_VARIABLES = ("SPARK_LOCAL_DIRS", "SPARK_EXECUTOR_DIRS")
_TEMPORARY = "java.io.tmpdir"
_PREFIX = "dynamic-table-spark-"


def private_scratch_directory(settings: Mapping[str, str]) -> str | None:
    """Create a directory of mode 0700 for a session on a local master; its JVM deletes it on exit.

    Returns None if another directory is configured (``spark.local.dir`` in ``settings`` or spark-defaults.conf,
    ``SPARK_LOCAL_DIRS``), or if a session is already running. Starts Spark's JVM with ``settings``.
    """
    if LOCAL_DIR in settings or SparkContext._active_spark_context is not None:  # noqa: SLF001  no other way
        return None
    wanted = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    SparkContext._ensure_initialized(conf=wanted)  # noqa: SLF001  as SparkSession.builder does next
    jvm: Any = SparkContext._jvm  # noqa: SLF001  likewise
    if SparkConf(_jvm=jvm).contains(LOCAL_DIR) or any(jvm.System.getenv(each) for each in _VARIABLES):
        return None
    directory = tempfile.mkdtemp(prefix=_PREFIX, dir=jvm.System.getProperty(_TEMPORARY))
    try:
        # Use Spark's shutdown hook: it runs after the blocks are closed, and also if the Python process was killed.
        jvm.org.apache.spark.util.ShutdownHookManager.registerShutdownDeleteDir(jvm.java.io.File(directory))
        # Temporary checkpoints, artifacts and similar files ignore spark.local.dir.
        jvm.System.setProperty(_TEMPORARY, directory)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    return os.path.realpath(directory)
