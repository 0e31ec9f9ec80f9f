"""A limit of the rows of a micro-batch is refused where a stream is defined, by a Spark that does not pass it on.

A stream reader would refuse it later, in a stream that runs; and Spark 4.0 and 4.1 follow an error that leaves them
without a reader by an error of their own.
"""

from __future__ import annotations

from collections.abc import Mapping

from storage_lib.spark.versions.spark_feature import SparkFeature

_OPTION = "maxRowsPerTrigger"


def refuse_limit(where: str, name: str, rows_max: object | None) -> None:
    """Raise ``InvalidInputError`` for a limit, given as ``name``, if the installed Spark does not know limits."""
    if rows_max is not None:
        SparkFeature.ADMISSION_CONTROL.require(where, f"Leave {name} out: a micro-batch then has all new rows")


def refuse_limit_of_source(source_name: str, options: Mapping[str, str]) -> None:
    """Likewise for the options of a source.

    Spark creates a source where a stream is defined without a schema, and otherwise as the stream starts.
    """
    given = {key.lower(): value for key, value in options.items()}
    refuse_limit(f'format("{source_name}")', _OPTION, given.get(_OPTION.lower()))
