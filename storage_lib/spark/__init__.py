"""The Spark connector: ``register(spark)`` and ``format("dynamic_table")``, or the verbs below, which do more.

Importing this package does not import pyspark: names are resolved on first use, so that a scheduler can load
``SinkSpec`` and ``SinkHeartbeat`` cheaply.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from storage_lib.distribution import import_failure

if TYPE_CHECKING:
    from storage_lib.spark.compaction.distributed_compaction import compact
    from storage_lib.spark.data_source.table_source import register
    from storage_lib.spark.materialized.alter_materialized import (
        resume,
        set_freshness,
        set_query,
        set_refresh_mode,
        suspend,
    )
    from storage_lib.spark.materialized.create_materialized import create_materialized_table
    from storage_lib.spark.materialized.refresh_result import RefreshResult
    from storage_lib.spark.materialized.refresh_table import refresh
    from storage_lib.spark.runtime.spark_session import session
    from storage_lib.spark.stream.sink.sink_heartbeat import SinkHeartbeat, SinkState
    from storage_lib.spark.stream.sink.sink_spec import SinkSource, SinkSpec
    from storage_lib.spark.verbs.auto_cdc import create_auto_cdc_flow
    from storage_lib.spark.verbs.changelog_verbs import read_changelog
    from storage_lib.spark.verbs.dataframe_verbs import read, read_stream, write
    from storage_lib.spark.verbs.stream_verbs import write_stream
    from storage_lib.spark.verbs.table_stream import TableStream

_HOMES = {
    "RefreshResult": "materialized.refresh_result",
    "SinkHeartbeat": "stream.sink.sink_heartbeat",
    "SinkSource": "stream.sink.sink_spec",
    "SinkSpec": "stream.sink.sink_spec",
    "SinkState": "stream.sink.sink_heartbeat",
    "TableStream": "verbs.table_stream",
    "compact": "compaction.distributed_compaction",
    "create_auto_cdc_flow": "verbs.auto_cdc",
    "create_materialized_table": "materialized.create_materialized",
    "read": "verbs.dataframe_verbs",
    "read_changelog": "verbs.changelog_verbs",
    "read_stream": "verbs.dataframe_verbs",
    "refresh": "materialized.refresh_table",
    "register": "data_source.table_source",
    "resume": "materialized.alter_materialized",
    "session": "runtime.spark_session",
    "set_freshness": "materialized.alter_materialized",
    "set_query": "materialized.alter_materialized",
    "set_refresh_mode": "materialized.alter_materialized",
    "suspend": "materialized.alter_materialized",
    "write": "verbs.dataframe_verbs",
    "write_stream": "verbs.stream_verbs",
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
        return getattr(import_module(f"{__name__}.{home}"), name)
    except (ImportError, AttributeError) as error:
        raise import_failure(f"{__name__}.{name}", error, "spark") from error
