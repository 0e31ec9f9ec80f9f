"""Start Spark drivers and daemons in addition to the test's own session."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from storage_lib.spark.runtime.warm_python import can_fork, warm_python

REPOSITORY = Path(__file__).parents[2]
QUICK = {name: os.environ[name] for name in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS") if name in os.environ}


def clean_environment() -> dict[str, str]:
    """Return the environment without the variables of the test's own Spark, and with the repository importable."""
    inherited = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK_", "SPARK_", "_PYSPARK"))
    }
    return {**inherited, **QUICK, "PYTHONPATH": str(REPOSITORY), "PYSPARK_PYTHON": sys.executable}


def warm_environment() -> dict[str, str]:
    """Return `clean_environment` with a Python that has imported before Spark starts it for streams and plans."""
    return {**clean_environment(), "PYSPARK_PYTHON": warm_python() if can_fork() else sys.executable}
