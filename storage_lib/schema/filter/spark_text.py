"""The dialect of Spark 4 for sqlglot, in which all text of Spark SQL is parsed."""

from __future__ import annotations

from typing import ClassVar

from sqlglot.dialects.spark import Spark

__all__ = ["SparkText"]


class SparkText(Spark):
    """Spark SQL in which a doubled quote in a text is one quote, as since Spark 4.0; sqlglot's has two texts there."""

    class Tokenizer(Spark.Tokenizer):
        """The tokens of Spark SQL."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']
