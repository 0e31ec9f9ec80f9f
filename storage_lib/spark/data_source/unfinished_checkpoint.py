"""Remains of a killed driver in a checkpoint: files that keep Spark from starting, and a micro-batch to repeat.

Spark writes the file of a micro-batch under a temporary name and renames it. A driver that is killed in between leaves
that file (``remove_unfinished``). As long as no micro-batch is planned, Spark 4.1 and later take any file in
``offsets`` and ``commits`` for the state of another query and refuse to start
(``STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY``). The real-time mode first deletes the offsets of a micro-batch that was
not committed, so there a temporary file in ``commits`` is enough.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from storage_lib.spark.data_source.checkpoint_identity import PLANNED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COMMITTED = "commits"
"""Directory with a file for each micro-batch that was committed."""

_TEMPORARY = re.compile(r"\.\d+\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.tmp")


def remove_unfinished(spark: SparkSession, checkpoint_location: str) -> None:
    """Delete Spark's temporary files in a checkpoint that has no committed micro-batch; other files stay.

    No other query may run from the checkpoint, which Spark does not allow either.
    """
    for directory in (_COMMITTED, PLANNED):
        files, found = _listed(spark, checkpoint_location, directory)
        if directory == _COMMITTED and _numbers(found):
            return
        for each in found:
            if _TEMPORARY.fullmatch(str(each.getName())):
                files.delete(each, False)


def has_batch_to_repeat(spark: SparkSession, checkpoint_location: str) -> bool:
    """Return whether the last planned micro-batch was not committed, so that the next run repeats it."""
    planned, committed = (
        max(_numbers(_listed(spark, checkpoint_location, each)[1]), default=-1) for each in (PLANNED, _COMMITTED)
    )
    return planned > committed


def _listed(spark: SparkSession, checkpoint_location: str, directory: str) -> tuple[Any, list[Any]]:
    """Return Hadoop's file system of a directory of the checkpoint, and the paths in it."""
    # The JVM's file system classes are only reachable through pyspark's gateway.
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
    configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    path = jvm.org.apache.hadoop.fs.Path(f"{checkpoint_location.rstrip('/')}/{directory}")
    files = path.getFileSystem(configuration)
    return files, [status.getPath() for status in files.listStatus(path)] if files.exists(path) else []


def _numbers(paths: list[Any]) -> list[int]:
    return [int(name) for name in (str(each.getName()) for each in paths) if name.isdigit()]
