"""Jars that `make servers` fetches for Spark, which the session of most tests does not have."""

from __future__ import annotations

from pathlib import Path

_LOCAL = Path(__file__).parents[2] / ".local"
SPARK_KAFKA = _LOCAL / "spark_kafka" / "lib"
SPARK_S3 = _LOCAL / "spark_s3" / "lib"


def jars_in(folder: Path) -> str:
    """Return the jars as the value of ``spark.jars``."""
    return ",".join(sorted(map(str, folder.glob("*.jar"))))
