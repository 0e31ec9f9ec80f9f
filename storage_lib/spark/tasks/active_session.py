"""Spark's active session: the one whose data sources and settings Spark uses in the current thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from storage_lib.spark.tasks.session_kind import is_connect


@contextmanager
def active_session(spark: SparkSession) -> Iterator[None]:
    """Make ``spark`` the active session of this thread while the body runs.

    Spark looks up data sources in the active session, even for a write of another session's data frame. In a new thread
    that is the default session; ``newSession()`` does not change it. A Spark Connect server does this for each request.
    """
    if is_connect(spark):
        yield
        return
    sessions: Any = SparkSession._get_j_spark_session_class(spark.sparkContext._jvm)  # type: ignore[attr-defined, unused-ignore]  # noqa: SLF001
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)  # noqa: SLF001
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()
