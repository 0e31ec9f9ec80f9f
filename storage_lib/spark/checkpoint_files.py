"""Lets a stream write its own notes, offsets and commits, quickly where its checkpoint is a directory of this machine.

Spark writes them through Hadoop's FileContext by default, which starts the command ``readlink`` a dozen times for each
file: a tenth of a second and more of every micro-batch. Its other manager asks Java. Both write aside and rename; what
the default has over the other, an atomic rename that refuses to replace, HDFS offers and a local directory does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_BY_JAVA = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


@contextmanager
def quick_local_checkpoints(spark: SparkSession, location: str) -> Iterator[None]:
    """Streams that are started in the body with a checkpoint at ``location``; what the session says otherwise wins."""
    if spark.conf.get(_MANAGER, None) is not None or not _is_local(spark, location):
        yield
        return
    spark.conf.set(_MANAGER, _BY_JAVA)
    try:
        yield
    finally:
        spark.conf.unset(_MANAGER)


def _is_local(spark: SparkSession, location: str) -> bool:
    # The JVM's file system classes are only reachable through pyspark's gateway.
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
    configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    scheme = jvm.org.apache.hadoop.fs.Path(location).getFileSystem(configuration).getUri().getScheme()
    return str(scheme) == "file"
