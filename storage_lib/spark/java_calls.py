"""SQL functions that call any static method of Java: taken away where somebody else wrote the SQL."""

from __future__ import annotations

from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from storage_lib.errors import InvalidInputError

JAVA_CALLS = ("java_method", "reflect", "try_reflect")
_MISSING = "UNRESOLVED_ROUTINE"


def forbid_java_calls(spark: SparkSession) -> None:
    """Remove ``reflect``, ``java_method`` and ``try_reflect`` from a session and from those cloned from it.

    They read the environment of the driver, where secrets are, and set its properties. Raises ``InvalidInputError`` if
    this Spark keeps them all the same.
    """
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001  Spark offers no other way
    registry = spark._jsparkSession.sessionState().functionRegistry()  # noqa: SLF001  likewise
    some = jvm.scala.Option.apply
    for name in JAVA_CALLS:
        identifier = jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name, some("builtin"), some("system"))
        registry.dropFunction(identifier)
    for name in JAVA_CALLS:
        if _is_known(spark, name):
            message = f"SQL function {name} cannot be removed from this version of Spark; queries of forms are refused"
            raise InvalidInputError(message)


def _is_known(spark: SparkSession, name: str) -> bool:
    try:
        spark.sql(f"SELECT {name}('java.lang.Math', 'random')")
    except AnalysisException as error:
        return (error.getCondition() or "") != _MISSING
    return True
