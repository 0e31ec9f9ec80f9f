"""Packages of the JVM's internal classes, which have moved between versions of Spark."""

from __future__ import annotations

from storage_lib.spark.versions.spark_feature import installed_since

__all__ = ["CHECKPOINTING"]

_STREAMING = "org.apache.spark.sql.execution.streaming"
CHECKPOINTING = f"{_STREAMING}.checkpointing" if installed_since(4, 1) else _STREAMING
"""The package of the classes that write checkpoints."""
