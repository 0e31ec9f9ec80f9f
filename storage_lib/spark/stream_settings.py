"""Spark's settings under which a stream into a table is quick; what the session says itself wins.

Spark plans each micro-batch anew as it learns the sizes of what is shuffled ("adaptive"). A stream's one shuffle, by
bucket, has its number of tasks, so nothing comes of it but a second plan and a second job: 15 ms of a batch of 260.

Spark writes a stream's own notes, offsets and commits, through Hadoop's FileContext by default, which starts the
command ``readlink`` a dozen times for each file: a tenth of a second and more of every micro-batch. Its other manager
asks Java. Both write aside and rename; what the default has over the other, an atomic rename that refuses to replace,
HDFS offers and a local directory does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_BY_JAVA = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
_ADAPTIVE = "spark.sql.adaptive.streaming.stateless.enabled"


@contextmanager
def quick_batches(spark: SparkSession, checkpoint_location: str) -> Iterator[None]:
    """Streams that are started in the body, with that checkpoint; a stream keeps the settings it was started with."""
    wanted = {_ADAPTIVE: "false"}
    if _is_local(spark, checkpoint_location):
        wanted[_MANAGER] = _BY_JAVA
    ours = {key: value for key, value in wanted.items() if spark.conf.get(key, None) is None}
    try:
        for key, value in ours.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key in ours:
            spark.conf.unset(key)


def _is_local(spark: SparkSession, location: str) -> bool:
    # The JVM's file system classes are only reachable through pyspark's gateway.
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
    configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    scheme = jvm.org.apache.hadoop.fs.Path(location).getFileSystem(configuration).getUri().getScheme()
    return str(scheme) == "file"
