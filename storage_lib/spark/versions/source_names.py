"""Names of data sources; before Spark 4.1, the name of one that Spark has found by itself can't be registered again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from storage_lib.spark.versions.spark_feature import installed_since

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["free_names"]


def free_names(spark: SparkSession, names: Iterable[str]) -> None:
    """Let data sources of these names be registered in a classic session, in place of those that Spark has found.

    Before Spark 4.1, sessions that are started later have to register them as well, as this one.
    """
    if installed_since(4, 1):
        return
    # What Spark has found is only reachable through pyspark's gateway: of all sessions, as a stream copies its own, and
    # of this one in a private field.
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
    manager: Any = spark._jsparkSession.sessionState().dataSourceManager()  # type: ignore[attr-defined, unused-ignore]  # noqa: SLF001
    of_all = getattr(jvm.org.apache.spark.sql.execution.datasources, "DataSourceManager$").__getattr__("MODULE$")
    of_session = manager.getClass().getDeclaredField("staticDataSourceBuilders")
    of_session.setAccessible(True)
    for name in names:
        manager.dataSourceExists(name)  # searches, unless it has; a later search would find them again
        of_session.set(manager, of_session.get(manager).removed(name))
        known = of_all.dataSourceBuilders()
        if known.isDefined():
            getattr(of_all, "dataSourceBuilders_$eq")(jvm.scala.Some(known.get().removed(name)))
