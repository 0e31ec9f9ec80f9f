"""Schema in force: the newest, unless it still waits for the rewrite that it was made for."""

from __future__ import annotations

from storage_lib.errors import CommitConflictError
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.snapshot.snapshot_history import SnapshotHistory
from storage_lib.io.file_io import FileIO
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.schema.evolution.schema_history import SchemaHistory
from storage_lib.schema.placing.layout import TOPIC_OPTION, begins_layout, schema_id_before
from storage_lib.schema.table_schema import TableSchema


def schema_in_force(file_io: FileIO, paths: TablePaths) -> TableSchema | None:
    """Return the schema for reads and writes; None if the table does not exist. Raises as ``SchemaHistory.load``."""
    history = SchemaHistory(file_io, paths)
    newest = history.latest()
    if newest is None or not begins_layout(newest):
        return newest
    snapshot = SnapshotHistory(file_io, paths).latest()
    if not waits_for_rewriting(newest, snapshot):
        return newest
    # An earlier rewrite may have been committed after the newest one started.
    return history.load(max(schema_id_before(newest), 0 if snapshot is None else snapshot.schema_id))


def waits_for_rewriting(newest: TableSchema, snapshot: Snapshot | None) -> bool:
    """Return whether the layout of the newest schema still has no snapshot; ``snapshot`` is the newest one."""
    return begins_layout(newest) and (snapshot is None or snapshot.schema_id < newest.id)


def rewritten_since(table: str, opened: TableSchema, newer: TableSchema) -> CommitConflictError:
    """Return the error for a caller that opened ``table`` under ``opened`` after ``newer`` changed its layout."""
    key = f"primary key ({', '.join(newer.primary_keys)})" if newer.primary_keys else "no primary key"
    topic = newer.options.get(TOPIC_OPTION)
    message = (
        f"table {table} was rewritten since it was opened here: it has {key} and bucket={newer.bucket_count} under "
        f"schema {newer.id}, and was opened under schema {opened.id}"
        f"{f'; its log is topic {topic!r} now' if topic else ''}. Nothing was done; load the table again, or restart "
        "the stream, and repeat it"
    )
    return CommitConflictError(message)
