"""Entry point by which Spark finds ``format("dynamic_table")`` in every session, without ``register``.

Spark looks for installed top-level packages that are named ``pyspark_*`` and have a data source ``DefaultSource``.
"""

from __future__ import annotations

from storage_lib.spark.data_source.table_source import DynamicTableSource as DefaultSource

__all__ = ["DefaultSource"]
