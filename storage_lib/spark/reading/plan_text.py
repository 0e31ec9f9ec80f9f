"""Spark's plan of a data frame, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def plan_text(df: DataFrame, mode: str = "simple") -> str:
    """Return what EXPLAIN shows for the query ``df``; ``mode``: simple, extended, codegen, cost, formatted.

    Spark's EXPLAIN statement fails for a stream: it plans the parsed query, which is not known to be one, as a batch.
    The projection makes Spark start from the analysed query.
    """
    jvm: Any = df.sparkSession.sparkContext._jvm  # noqa: SLF001  Spark offers no other way
    explain_mode = jvm.org.apache.spark.sql.execution.ExplainMode.fromString(mode)
    text: str = df.select("*")._jdf.queryExecution().explainString(explain_mode)  # noqa: SLF001  likewise
    return text
