"""The id of a streaming query, which is its commit user. It is stored in the checkpoint and survives restarts.

Spark writes ``metadata`` = ``{"id": "<uuid>"}`` into a new checkpoint and reads it back at every restart. A query that
``write_stream`` starts finds the file there already, so its id is known before its first batch is planned.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.io.file_io_factory import file_io_of, warehouse_root

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

TABLE_FILE = "dynamic-table"
"""File with the uuid of the table that the stream writes into; Spark ignores files that it does not know."""

PLANNED = "offsets"
"""Directory with the end of each micro-batch that was planned."""

QUERY_FILE = "dynamic-table-query"
"""File with the query of a stream that reads commits (``insert_stream``), whose offsets no other stream understands."""


def query_id_of(checkpoint_location: str, options: Mapping[str, str]) -> str:
    """Return the query's id from a checkpoint on a local disk, or in a store that the catalog's ``options`` reach.

    Raises ``InvalidInputError`` if the checkpoint has no readable metadata file.
    """
    try:
        files, directory = file_io_of(checkpoint_location, options), warehouse_root(checkpoint_location)
        return _id_in(files.read_bytes(f"{directory}/metadata").decode())
    except (InvalidInputError, NotFoundError) as error:
        message = (
            f"checkpoint {checkpoint_location} has no readable metadata file, so the query's id is unknown. Name an "
            "absolute path or a URL that the table's options can reach, start the stream with "
            "storage_lib.spark.write_stream(...), or set .option('commit-user', <a stable name>)"
        )
        raise InvalidInputError(message) from error


def settled_query_id(spark: SparkSession, checkpoint_location: str, table: DynamicTable) -> str:
    """Return the id of the query with this checkpoint, created if it is new; works for any storage of Spark's.

    Raises ``InvalidInputError`` for the checkpoint of a stream into another table: the records that it has already
    read would be missing from this one.
    """
    # The JVM's file system classes are only reachable through pyspark's gateway.
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
    fresh = json.dumps({"id": str(jvm.java.util.UUID.randomUUID().toString())})
    query_id = _id_in(settled(spark, f"{checkpoint_location.rstrip('/')}/metadata", fresh))
    written_to = settled(spark, f"{checkpoint_location.rstrip('/')}/{TABLE_FILE}", table.uuid)
    if written_to != table.uuid:
        message = (
            f"table {table.name}: checkpoint {checkpoint_location} is of a stream into another table, or into one of "
            "this name that was dropped since. What that stream has read would be missing here: give this one a "
            "checkpoint_location of its own"
        )
        raise InvalidInputError(message)
    return query_id


def is_there(spark: SparkSession, checkpoint_location: str, name: str) -> bool:
    """Return whether the checkpoint has a file or directory of this name."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
    path = jvm.org.apache.hadoop.fs.Path(f"{checkpoint_location.rstrip('/')}/{name}")
    return bool(path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).exists(path))  # noqa: SLF001


def settled(spark: SparkSession, location: str, text: str) -> str:
    """Return the content of a file in the checkpoint; create the file with ``text`` if it is missing or empty."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
    configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    path = jvm.org.apache.hadoop.fs.Path(location)
    files = path.getFileSystem(configuration)
    is_there = files.exists(path)
    if is_there:
        stream = files.open(path)
        try:
            found = str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()
        if found:
            return found
    # Overwrite the empty file that a crash during the write leaves. Otherwise fail if another process was faster.
    out = files.create(path, is_there)
    out.write(bytearray(text.encode()))
    out.close()
    return text


def _id_in(metadata: str) -> str:
    query_id: str = json.loads(metadata)["id"]
    return query_id
