"""The Spark of ``SPARK_HOME``, which pyspark starts in place of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pyspark

from storage_lib.spark.versions.fitting_spark import minor_version


def spark_home_problem(home: str) -> str | None:
    """Return why pyspark can't use the Spark in the directory ``home``; None if it is of pyspark's version."""
    jars = sorted(Path(home).glob("jars/spark-core_*.jar"))
    there = None if not jars else re.search(r"-(\d+\.\d+)[^/]*\.jar$", jars[0].name)
    if there is None:
        return f"SPARK_HOME is {home}, which has no jars/spark-core_*.jar; unset it, or set it to a Spark"
    if minor_version(there[1]) != minor_version(pyspark.__version__):
        return (
            f"SPARK_HOME is {home}, which has Spark {there[1]}, but pyspark is {pyspark.__version__}; unset it, or "
            f"install pyspark=={there[1]}.*"
        )
    return None
