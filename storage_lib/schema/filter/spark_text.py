"""The dialect of Spark 4 for sqlglot, in which all text of Spark SQL is parsed."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.dialect import rename_func
from sqlglot.dialects.spark import Spark

__all__ = ["SparkText"]


class SparkText(Spark):
    """Spark SQL in which a doubled quote in a text is one quote, as since Spark 4.0; sqlglot's has two texts there."""

    class Tokenizer(Spark.Tokenizer):
        """The tokens of Spark SQL."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    class Generator(Spark.Generator):  # type: ignore[misc, valid-type]  # a class that sqlglot assigns
        """Text of Spark SQL. UNIX_DATE stays what it is: a difference of dates has another type."""

        TRANSFORMS: ClassVar[dict[Any, Any]] = {**Spark.Generator.TRANSFORMS, exp.UnixDate: rename_func("UNIX_DATE")}
