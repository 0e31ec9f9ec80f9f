"""Whether a Spark session is classic or a client of a Spark Connect server.

A Connect session has no JVM: Spark's plans, its scheduler, and the number of its cores are out of reach. It can still
run any query, and with it any code on the server (a data source, ``mapInArrow``), if this library is installed there.
This is the one place that distinguishes the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OF_CONNECT = "pyspark.sql.connect."


def is_connect(spark: SparkSession) -> bool:
    """Return whether ``spark`` is a client of a Spark Connect server."""
    return type(spark).__module__.startswith(_OF_CONNECT)


def default_parallelism(spark: SparkSession) -> int | None:
    """Return the number of tasks that Spark runs at the same time; None over Spark Connect, where it is unknown."""
    return None if is_connect(spark) else spark.sparkContext.defaultParallelism


def is_local(spark: SparkSession) -> bool:
    """Return whether the session runs its tasks in threads of this machine, as far as it is known."""
    return not is_connect(spark) and (spark.sparkContext.master or "").startswith("local")


def refuse_connect(spark: SparkSession, what: str, *, why: str, remedy: str) -> None:
    """Raise ``InvalidInputError`` for ``what`` over Spark Connect, with the reason and what to do instead."""
    if is_connect(spark):
        message = f"{what} is not available over Spark Connect: {why}. {remedy}"
        raise InvalidInputError(message)
