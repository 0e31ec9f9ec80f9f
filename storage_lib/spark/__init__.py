"""The Spark connector: ``register(spark)`` and ``format("dynamic_table")``, or the verbs below, which do more.

Importing this package imports no pyspark: names are looked up when they are first used, so that a scheduler can
read ``SinkSpec`` and ``SinkHeartbeat`` cheaply.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from storage_lib.spark.changelog_verbs import read_changelog
    from storage_lib.spark.dataframe_verbs import read, read_stream, write
    from storage_lib.spark.distributed_compaction import compact
    from storage_lib.spark.sink_heartbeat import SinkHeartbeat, SinkState
    from storage_lib.spark.sink_spec import SinkSource, SinkSpec
    from storage_lib.spark.spark_session import session
    from storage_lib.spark.stream_verbs import TableStream, write_stream
    from storage_lib.spark.table_source import register

_HOMES = {
    "SinkHeartbeat": "sink_heartbeat",
    "SinkSource": "sink_spec",
    "SinkSpec": "sink_spec",
    "SinkState": "sink_heartbeat",
    "TableStream": "stream_verbs",
    "compact": "distributed_compaction",
    "read": "dataframe_verbs",
    "read_changelog": "changelog_verbs",
    "read_stream": "dataframe_verbs",
    "register": "table_source",
    "session": "spark_session",
    "write": "dataframe_verbs",
    "write_stream": "stream_verbs",
}

__all__ = [
    "SinkHeartbeat",
    "SinkSource",
    "SinkSpec",
    "SinkState",
    "TableStream",
    "compact",
    "read",
    "read_changelog",
    "read_stream",
    "register",
    "session",
    "write",
    "write_stream",
]


def __getattr__(name: str) -> object:
    """Import the module of a public name when it is first asked for."""
    home = _HOMES.get(name)
    if home is None:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(f"{__name__}.{home}"), name)
