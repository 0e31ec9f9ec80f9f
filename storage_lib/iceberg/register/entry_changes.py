"""The difference between a table's entry in a catalog and the view's metadata, as updates of Iceberg's REST protocol.

A catalog gives its own ids to schemas, and merges equal ones, so schemas are compared by their fields, and snapshots
get the catalog's ids.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata, TableMetadataV1
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)

from storage_lib.iceberg.encode.table_metadata import MAIN
from storage_lib.io.file_io_factory import is_local

Updates = tuple[TableUpdate, ...]


def updates_of(entry: TableMetadata, wanted: TableMetadata) -> Updates | None:
    """Return the updates that turn ``entry`` into ``wanted``; None if no update can: it has to be registered again.

    That is so after another program has committed to the entry, or rolled the table back, if the versions of Iceberg's
    format differ, and for a relative location, which earlier versions of this library named: the catalog resolves it
    against its own working directory.
    """
    if is_local(entry.location) and not entry.location.startswith(("/", "file:")):
        return None
    if entry.format_version != wanted.format_version or entry.spec().fields != wanted.spec().fields:
        return None
    if _has_diverged(entry, wanted):
        return None
    schema_ids, added = _schema_ids(entry.schemas, wanted.schemas)
    updates: list[TableUpdate] = [AddSchemaUpdate(schema=each) for each in added]
    current = schema_ids[wanted.current_schema_id]
    if current != entry.current_schema_id:
        updates.append(SetCurrentSchemaUpdate.model_validate({"schema-id": current}))
    there = {each.snapshot_id for each in entry.snapshots}
    # Nessie keeps only the snapshot that was added last, so an older one would become the current one.
    added_snapshots = [each for each in wanted.snapshots if each.snapshot_id > max(there, default=0)]
    updates += [AddSnapshotUpdate(snapshot=_with_schema(each, schema_ids)) for each in added_snapshots]
    then = there | {each.snapshot_id for each in added_snapshots}
    for name, reference in wanted.refs.items():
        known = entry.refs.get(name)
        if reference.snapshot_id in then and (known is None or known.snapshot_id != reference.snapshot_id):
            updates.append(_set_reference(name, reference.snapshot_id))
    gone = [name for name in entry.refs if name not in wanted.refs]
    updates += [RemoveSnapshotRefUpdate.model_validate({"ref-name": name}) for name in gone]
    expired = there - {each.snapshot_id for each in wanted.snapshots}
    if expired:
        updates.append(RemoveSnapshotsUpdate.model_validate({"snapshot-ids": sorted(expired)}))
    properties = {key: value for key, value in wanted.properties.items() if entry.properties.get(key) != value}
    if properties:
        updates.append(SetPropertiesUpdate(updates=properties))
    return tuple(updates)


def requirements_of(entry: TableMetadata) -> tuple[TableRequirement, ...]:
    """Return what a commit of updates to ``entry`` requires: that nobody has changed the entry meanwhile."""
    main = entry.refs.get(MAIN)
    return (
        AssertTableUUID(uuid=entry.table_uuid),
        AssertRefSnapshotId.model_validate({"ref": MAIN, "snapshot-id": None if main is None else main.snapshot_id}),
    )


def _has_diverged(entry: TableMetadata, wanted: TableMetadata) -> bool:
    """Return whether the entry has snapshots that are not older ones of the table."""
    lists = {each.snapshot_id: each.manifest_list for each in wanted.snapshots}
    newest = max(lists, default=0)
    # Ids below the newest one that the table does not have are those of expired snapshots.
    is_other = any(
        each.snapshot_id > newest or lists.get(each.snapshot_id, each.manifest_list) != each.manifest_list
        for each in entry.snapshots
    )
    return is_other or _last_sequence_number(entry) > _last_sequence_number(wanted)


def _set_reference(name: str, snapshot_id: int) -> TableUpdate:
    kind = SnapshotRefType.BRANCH if name == MAIN else SnapshotRefType.TAG
    return SetSnapshotRefUpdate.model_validate({"ref-name": name, "type": kind, "snapshot-id": snapshot_id})


def _last_sequence_number(metadata: TableMetadata) -> int:
    """Return the number of the last commit; tables of format version 1 have none."""
    return 0 if isinstance(metadata, TableMetadataV1) else metadata.last_sequence_number


def _schema_ids(there: Iterable[Schema], wanted: Iterable[Schema]) -> tuple[dict[int, int], list[Schema]]:
    """Return the catalog's id of each wanted schema, by its own, and the schemas to add, with their new ids."""
    known = {_fields(each): each.schema_id for each in there}
    free = max(known.values(), default=-1) + 1
    ids: dict[int, int] = {}
    added = []
    for schema in wanted:
        fields = _fields(schema)
        if fields not in known:
            known[fields] = free
            added.append(schema.model_copy(update={"schema_id": free}))
            free += 1
        ids[schema.schema_id] = known[fields]
    return ids, added


def _fields(schema: Schema) -> str:
    return schema.model_dump_json(include={"fields", "identifier_field_ids"})


def _with_schema(snapshot: Snapshot, ids: dict[int, int]) -> Snapshot:
    if snapshot.schema_id is None:
        return snapshot
    return snapshot.model_copy(update={"schema_id": ids[snapshot.schema_id]})
