"""Entry point by which Spark finds ``format("debezium_json")`` in every session; see ``pyspark_dynamic_table``."""

from __future__ import annotations

from storage_lib.spark.data_source.changelog_source import ChangelogSource as DefaultSource

__all__ = ["DefaultSource"]
