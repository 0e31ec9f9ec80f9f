"""Removes what a killed driver leaves of the first micro-batch in a checkpoint, and what keeps Spark from starting.

Spark writes the file of a micro-batch under a temporary name and renames it. A driver that is killed in between leaves
that file. As long as no micro-batch is planned, Spark 4.1 and later take any file in ``offsets`` and ``commits``
for the state of another query and refuse to start (``STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY``). The real-time mode
first deletes the offsets of a micro-batch that was not committed, so there a temporary file in ``commits`` is enough.
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
    # The JVM's file system classes are only reachable through pyspark's gateway.
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
    configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    for directory in (_COMMITTED, PLANNED):
        path = jvm.org.apache.hadoop.fs.Path(f"{checkpoint_location.rstrip('/')}/{directory}")
        files = path.getFileSystem(configuration)
        found = [status.getPath() for status in files.listStatus(path)] if files.exists(path) else []
        if directory == _COMMITTED and any(str(each.getName()).isdigit() for each in found):
            return
        for each in found:
            if _TEMPORARY.fullmatch(str(each.getName())):
                files.delete(each, False)
