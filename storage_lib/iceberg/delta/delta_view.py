"""What the Iceberg view shows, in the terms of a Delta log."""

from __future__ import annotations

import json
from functools import partial

from storage_lib.file_store.store import FileStore
from storage_lib.iceberg.delta.delta_actions import Layout
from storage_lib.iceberg.delta.delta_log import Shown
from storage_lib.iceberg.delta.delta_schema import delta_schema, is_named_alike, reader_features
from storage_lib.iceberg.encode.table_metadata import ViewMetadata
from storage_lib.iceberg.publish.view_content import ViewContent
from storage_lib.schema.table_schema import TableSchema

_COMPACTION = "replace"


def shown_to_delta(metadata: ViewMetadata, content: ViewContent, store: FileStore) -> Shown | None:
    """Return what Delta's readers are to see of the newest snapshot in a view, whose files ``content`` has.

    None if they would not find a column in some of the files by its name. Compactions write them again.
    """
    schema = store.version(metadata.schema_id)
    if not is_named_alike(schema, (store.version(each) for each in range(schema.id))):
        snapshot = store.snapshots.load(metadata.snapshot_id)
        written = {entry.file.schema_id for entry in store.scan.entries(snapshot)}
        if not is_named_alike(schema, map(store.version, written)):
            return None
    current = metadata.current
    return Shown(
        snapshot_id=metadata.snapshot_id,
        identity=metadata.identity,
        time_millis=metadata.updated_millis,
        layout=partial(_layout, metadata, schema),
        files=content.data_files(),
        delete_files=content.delete_files(),
        same_rows_as=current.parent if current is not None and current.summary["operation"] == _COMPACTION else None,
    )


def _layout(metadata: ViewMetadata, schema: TableSchema, *, maps_names: bool) -> Layout:
    configuration = {
        "delta.enableDeletionVectors": "true",
        # A VACUUM would take the table's own metadata for files that nobody needs.
        "delta.deletedFileRetentionDuration": "interval 36500 days",
    }
    if maps_names:
        configuration |= {
            "delta.columnMapping.mode": "name",
            "delta.columnMapping.maxColumnId": str(schema.highest_field_id),
        }
    return Layout(
        schema_text=json.dumps(delta_schema(schema, maps_names=maps_names), separators=(",", ":")),
        features=tuple(reader_features(schema, maps_names=maps_names)),
        configuration=configuration,
        table_id=metadata.table_uuid,
        created_millis=metadata.updated_millis,
    )
