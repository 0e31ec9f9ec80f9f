"""Restrictions for untrusted SQL, such as the text of a web form: it may only read tables.

Spark's SQL can call any static Java method, run programs (``TRANSFORM ... USING``), read files by path, and insert
environment variables of the driver, which may be secrets, into the text of a query (``${env:NAME}``); its functions of
XML read files and addresses. A session is restricted before the text is parsed, only listed functions are analysed
(``allowed_text``), and the resulting plan is checked before it runs.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession

from storage_lib.errors import InvalidInputError
from storage_lib.spark.runtime.allowed_text import refuse_query
from storage_lib.spark.versions.builtin_function import builtin_function

JAVA_CALLS = ("java_method", "reflect", "try_reflect")
_MISSING = "UNRESOLVED_ROUTINE"
_LOGGER_OF_ERRORS = "SQLQueryContextLogger"
_SETTINGS = {
    "spark.sql.runSQLOnFiles": "false",  # SELECT * FROM text.`/etc/passwd`
    "spark.sql.variable.substitute": "false",  # ${env:NAME}
}
_PLANS = "org.apache.spark.sql.catalyst.plans.logical"
# Plan nodes that run programs or have side effects.
_REFUSED = (
    f"{_PLANS}.ScriptTransformation",
    f"{_PLANS}.Command",
    f"{_PLANS}.ParsedStatement",
    f"{_PLANS}.InsertIntoDir",
)


def restrict_sql(spark: SparkSession) -> None:
    """Disable Java calls, reads of files by path and variable substitution in a session and its clones.

    Raises ``InvalidInputError`` if this version of Spark keeps the Java functions. Check each query as well:
    ``refuse_commands``.
    """
    for key, value in _SETTINGS.items():
        spark.conf.set(key, value)
    registry = spark._jsparkSession.sessionState().functionRegistry()  # noqa: SLF001  Spark offers no other way
    for name in JAVA_CALLS:
        registry.dropFunction(builtin_function(spark, name))
    for name in JAVA_CALLS:
        if _is_known(spark, name):
            message = f"SQL function {name} cannot be removed from this version of Spark; queries of forms are refused"
            raise InvalidInputError(message)


def refuse_statement(spark: SparkSession, text: str) -> None:
    """Refuse a statement that is not a query, runs a program or calls functions that are not listed, before Spark does.

    Raises ``InvalidInputError``, or Spark's ``ParseException`` for invalid syntax.
    """
    _refuse(spark, spark._jsparkSession.sessionState().sqlParser().parsePlan(text))  # noqa: SLF001  no other way
    refuse_query(spark, text)


def refuse_commands(df: DataFrame) -> None:
    """Raise ``InvalidInputError`` for a data frame that would run a program, also inside a view or a subquery."""
    _refuse(df.sparkSession, df._jdf.queryExecution().analyzed())  # noqa: SLF001  Spark offers no other way


def _refuse(spark: SparkSession, plan: Any) -> None:
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001  likewise
    refused = [jvm.java.lang.Class.forName(name, False, _loader(jvm)) for name in _REFUSED]
    for node in _nodes(jvm, plan):
        if any(each.isInstance(node) for each in refused):
            message = (
                f"the query holds {node.nodeName()}, which runs a program or changes something; SQL of a form may only "
                "read tables"
            )
            raise InvalidInputError(message)


def _loader(jvm: Any) -> Any:
    return jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()


def _nodes(jvm: Any, plan: Any) -> Iterator[Any]:
    """Yield every node of a plan, including those of subqueries and common table expressions."""
    waiting, seen = [plan], set()
    while waiting:
        node = waiting.pop()
        number = jvm.java.lang.System.identityHashCode(node)
        if number in seen:
            continue
        seen.add(number)
        yield node
        for below in (node.children(), node.subqueries(), node.innerChildren()):
            waiting += [below.apply(index) for index in range(below.size())]


def _is_known(spark: SparkSession, name: str) -> bool:
    try:
        with _errors_of_this_thread_unlogged():
            spark.sql(f"SELECT {name}('java.lang.Math', 'random')")
    except AnalysisException as error:
        return (error.getCondition() or "") != _MISSING
    return True


@contextmanager
def _errors_of_this_thread_unlogged() -> Iterator[None]:
    """Keep pyspark from logging the stack trace of an error that is expected here."""
    logger, own = PySparkLogger.getLogger(_LOGGER_OF_ERRORS), threading.get_ident()

    def is_of_others(record: logging.LogRecord) -> bool:
        return record.thread != own

    logger.addFilter(is_of_others)
    try:
        yield
    finally:
        logger.removeFilter(is_of_others)
