"""The Spark connector: ``register(spark)`` and ``format("dynamic_table")``, or the verbs below, which do more.

Importing this package does not import pyspark: names are resolved on first use, so that a scheduler can load
``SinkSpec`` and ``SinkHeartbeat`` cheaply.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from storage_lib.distribution import import_failure

if TYPE_CHECKING:
    from storage_lib.materialized.definition.alter_materialized import (
        resume,
        set_freshness,
        set_refresh_mode,
        suspend,
    )
    from storage_lib.materialized.plan.refresh_result import RefreshResult
    from storage_lib.progress.sink_state import SinkState
    from storage_lib.spark.compaction.distributed_compaction import compact
    from storage_lib.spark.data_source.table_source import register
    from storage_lib.spark.engine.create_materialized_table import create_materialized_table
    from storage_lib.spark.engine.refresh import refresh
    from storage_lib.spark.engine.set_query import set_query
    from storage_lib.spark.runtime.spark_session import session
    from storage_lib.spark.stream.sink.sink_heartbeat import SinkHeartbeat
    from storage_lib.spark.stream.sink.sink_spec import SinkSource, SinkSpec
    from storage_lib.spark.verbs.auto_cdc import create_auto_cdc_flow
    from storage_lib.spark.verbs.changelog_verbs import read_changelog
    from storage_lib.spark.verbs.dataframe_verbs import read, read_stream, write
    from storage_lib.spark.verbs.stream_verbs import write_stream
    from storage_lib.spark.verbs.table_stream import TableStream

_HOMES = {
    "RefreshResult": "storage_lib.materialized.plan.refresh_result",
    "SinkHeartbeat": "storage_lib.spark.stream.sink.sink_heartbeat",
    "SinkSource": "storage_lib.spark.stream.sink.sink_spec",
    "SinkSpec": "storage_lib.spark.stream.sink.sink_spec",
    "SinkState": "storage_lib.progress.sink_state",
    "TableStream": "storage_lib.spark.verbs.table_stream",
    "compact": "storage_lib.spark.compaction.distributed_compaction",
    "create_auto_cdc_flow": "storage_lib.spark.verbs.auto_cdc",
    "create_materialized_table": "storage_lib.spark.engine.create_materialized_table",
    "read": "storage_lib.spark.verbs.dataframe_verbs",
    "read_changelog": "storage_lib.spark.verbs.changelog_verbs",
    "read_stream": "storage_lib.spark.verbs.dataframe_verbs",
    "refresh": "storage_lib.spark.engine.refresh",
    "register": "storage_lib.spark.data_source.table_source",
    "resume": "storage_lib.materialized.definition.alter_materialized",
    "session": "storage_lib.spark.runtime.spark_session",
    "set_freshness": "storage_lib.materialized.definition.alter_materialized",
    "set_query": "storage_lib.spark.engine.set_query",
    "set_refresh_mode": "storage_lib.materialized.definition.alter_materialized",
    "suspend": "storage_lib.materialized.definition.alter_materialized",
    "write": "storage_lib.spark.verbs.dataframe_verbs",
    "write_stream": "storage_lib.spark.verbs.stream_verbs",
}

__all__ = [
    "RefreshResult",
    "SinkHeartbeat",
    "SinkSource",
    "SinkSpec",
    "SinkState",
    "TableStream",
    "compact",
    "create_auto_cdc_flow",
    "create_materialized_table",
    "read",
    "read_changelog",
    "read_stream",
    "refresh",
    "register",
    "resume",
    "session",
    "set_freshness",
    "set_query",
    "set_refresh_mode",
    "suspend",
    "write",
    "write_stream",
]


def __getattr__(name: str) -> object:
    """Import the module of a public name on first use."""
    home = _HOMES.get(name)
    if home is None:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    try:
        return getattr(import_module(home), name)
    except (ImportError, AttributeError) as error:
        raise import_failure(f"{__name__}.{name}", error, "spark") from error
