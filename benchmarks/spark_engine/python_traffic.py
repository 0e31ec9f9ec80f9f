"""Bytes that Spark exchanged with its Python workers, for a local master of Spark 4.3."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHOWN = ("data sent to Python workers", "data returned from Python workers")
_COUNTERS = ("pythonDataSent", "pythonDataReceived")
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
# The total is at the beginning, or on the second line, below the names of the parts.
_SIZE = re.compile(r"^([\d.,]+) ([KMGT]?i?B)", re.MULTILINE)


class PythonTraffic:
    """Counts the bytes of queries since the last call, in both directions.

    Python functions have SQL metrics for each query, which Spark shows with two to four significant digits. A Python
    data source has counters that all queries of the JVM share: its metrics of a query are sums of their snapshots, and
    are therefore not used here.
    """

    def __init__(self, spark: SparkSession) -> None:
        # pyspark has no public way to the metrics of executed queries.
        self._bus = spark.sparkContext._jsc.sc().listenerBus()  # noqa: SLF001
        self._store = spark._jsparkSession.sharedState().statusStore()  # noqa: SLF001
        python: Any = spark._jvm.org.apache.spark.sql.execution.datasources.v2.python  # type: ignore[union-attr]  # noqa: SLF001
        metrics = python.PythonCustomMetric.pythonMetrics()
        self._counters = [metrics.apply(name) for name in _COUNTERS]
        self._counted = 0
        self._seen = -1

    def bytes_since_last_call(self) -> int:
        """Return the bytes of the queries that have ended since the last call."""
        self._bus.waitUntilEmpty()
        counted = sum(int(counter.value()) for counter in self._counters)
        of_sources, self._counted = counted - self._counted, counted
        executions = self._store.executionsList()
        all_of_them = [executions.apply(index) for index in range(executions.size())]
        new = [each for each in all_of_them if each.executionId() > self._seen]
        self._seen = max([self._seen, *(each.executionId() for each in new)])
        return of_sources + sum(map(self._bytes_of_functions, new))

    def _bytes_of_functions(self, execution: Any) -> int:
        metrics = execution.metrics()
        named = [metrics.apply(index) for index in range(metrics.size())]
        wanted = {each.accumulatorId() for each in named if each.name() in _SHOWN and each.metricType() == "size"}
        if not wanted:
            return 0
        values = self._store.executionMetrics(execution.executionId()).iterator()
        total = 0
        while values.hasNext():
            pair = values.next()
            if pair._1() in wanted:  # noqa: SLF001  a tuple of Scala
                total += size_of(pair._2())  # noqa: SLF001
        return total


def size_of(text: str) -> int:
    r"""Return the bytes of a metric as Spark shows it, for example ``total (min, med, max)\n12.3 MiB (…)``."""
    found = _SIZE.search(text)
    if found is None:
        message = f"unknown format of a size metric of Spark: {text!r}"
        raise ValueError(message)
    return round(float(found[1].replace(",", "")) * _UNITS[found[2]])
