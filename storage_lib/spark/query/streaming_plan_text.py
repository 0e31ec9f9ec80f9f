"""Spark's plan of a streaming query, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def streaming_plan_text(df: DataFrame, mode: str = "simple") -> str:
    """Return what EXPLAIN shows for the streaming query ``df``; ``mode``: simple, extended, codegen, cost, formatted.

    Spark's EXPLAIN statement fails here: it plans the parsed query, which is not yet known to be a stream, as a batch.
    The projection makes Spark start from the analysed query.
    """
    jvm: Any = df.sparkSession.sparkContext._jvm  # noqa: SLF001  Spark offers no other way
    explain_mode = jvm.org.apache.spark.sql.execution.ExplainMode.fromString(mode)
    text: str = df.select("*")._jdf.queryExecution().explainString(explain_mode)  # noqa: SLF001  likewise
    return text
