"""The view's metadata file: a JSON object with the schemas, snapshots and references of an Iceberg table.

The id and the sequence number of an Iceberg snapshot are the id of the table's snapshot that it shows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any
from uuid import UUID

from storage_lib.errors import CorruptFileError
from storage_lib.file_store.data_file.key_value import KEY_FIELD_ID_START
from storage_lib.iceberg.encode.iceberg_schema import iceberg_schema
from storage_lib.iceberg.encode.partition_record import SPEC_ID, last_partition_id, partition_fields
from storage_lib.schema.options.table_options import IcebergVersion
from storage_lib.schema.table_schema import TableSchema

SNAPSHOT_PROPERTY = "dynamic-table.snapshot-id"
"""Property with the id of the newest snapshot that the view shows: 0 for a table without one."""
IDENTITY_PROPERTY = "dynamic-table.snapshot-identity"
"""Property that tells this snapshot from another one that reuses its id, after a rollback by another engine."""
FRESHNESS_PROPERTY = "dynamic-table.shows"
"""Property that tells which snapshots the view shows."""
EVERY_SNAPSHOT, MERGED_SNAPSHOTS = "every snapshot", "snapshots whose rows compactions have merged"
MAIN = "main"
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, kw_only=True)
class ShownSnapshot:
    """One snapshot of the view; ``summary`` has its operation.

    Its rows have row ids from ``first_row_id`` on; None in version 2 of the format, which has none.
    """

    id: int
    parent: int | None
    time_millis: int
    manifest_list: str
    summary: Mapping[str, str]
    schema_id: int
    first_row_id: int | None
    added_rows: int

    @cached_property
    def encoded(self) -> str:
        """JSON of the snapshot, which each later metadata file repeats."""
        return _json(_snapshot(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewMetadata:
    """Content of a metadata file. ``snapshots`` are in the order of their ids; ``tags`` name some of them."""

    version: IcebergVersion
    table_uuid: str
    location: str
    snapshot_id: int
    identity: str
    schema_id: int
    updated_millis: int
    next_row_id: int
    schemas: Mapping[int, Mapping[str, Any]]
    snapshots: Sequence[ShownSnapshot]
    tags: Mapping[str, int]
    freshness: str = EVERY_SNAPSHOT

    @property
    def current(self) -> ShownSnapshot | None:
        """The newest snapshot; None for a table without one."""
        return self.snapshots[-1] if self.snapshots else None

    @property
    def follows_each(self) -> bool:
        """Whether the view shows every snapshot of the table, so that those shown follow each other."""
        return self.freshness == EVERY_SNAPSHOT


def encode_metadata(metadata: ViewMetadata, schema: TableSchema) -> bytes:
    """Encode a metadata file; ``schema`` is the table's, for its keys and partitions."""
    current = metadata.current
    value = {
        "format-version": int(metadata.version),
        "table-uuid": metadata.table_uuid,
        "location": metadata.location,
        "last-sequence-number": metadata.snapshot_id,
        "last-updated-ms": metadata.updated_millis,
        # Keys have the highest ids in the files. ClickHouse refuses files with higher ones than this.
        "last-column-id": KEY_FIELD_ID_START + schema.highest_field_id,
        "current-schema-id": metadata.schema_id,
        "schemas": [metadata.schemas[each] for each in sorted(metadata.schemas)],
        "default-spec-id": SPEC_ID,
        "partition-specs": [{"spec-id": SPEC_ID, "fields": partition_fields(schema)}],
        "last-partition-id": last_partition_id(schema),
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {
            # Engines of Iceberg must not delete the table's files.
            "gc.enabled": "false",
            SNAPSHOT_PROPERTY: str(metadata.snapshot_id),
            IDENTITY_PROPERTY: metadata.identity,
            FRESHNESS_PROPERTY: metadata.freshness,
        },
        "current-snapshot-id": -1 if current is None else current.id,
        **({"next-row-id": metadata.next_row_id} if metadata.version is IcebergVersion.V3 else {}),
        "metadata-log": [],
        "refs": _references(metadata),
    }
    snapshots = ",".join(each.encoded for each in metadata.snapshots)
    log = ",".join(f'{{"snapshot-id":{each.id},"timestamp-ms":{each.time_millis}}}' for each in metadata.snapshots)
    return f'{_json(value)[:-1]},"snapshots":[{snapshots}],"snapshot-log":[{log}]}}'.encode()


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def decode_metadata(data: bytes, source: str) -> ViewMetadata | None:
    """Decode a metadata file; None if another program wrote it. Raises ``CorruptFileError`` if it is not one."""
    try:
        value = json.loads(data)
        shown = int(value.get("properties", {}).get(SNAPSHOT_PROPERTY, -1))
        current = value.get("current-snapshot-id")
        if shown < 0 or (current if current not in (None, -1) else 0) != shown:
            # An engine that writes into the view copies the properties, and makes a snapshot of its own.
            return None
        return ViewMetadata(
            version=IcebergVersion(value["format-version"]),
            table_uuid=value["table-uuid"],
            location=value["location"],
            snapshot_id=shown,
            identity=value["properties"][IDENTITY_PROPERTY],
            schema_id=value["current-schema-id"],
            updated_millis=value["last-updated-ms"],
            next_row_id=value.get("next-row-id", 0),
            schemas={each["schema-id"]: each for each in value["schemas"]},
            snapshots=tuple(_shown(each) for each in value["snapshots"]),
            tags={name: each["snapshot-id"] for name, each in value["refs"].items() if each["type"] == "tag"},
            freshness=value["properties"].get(FRESHNESS_PROPERTY, EVERY_SNAPSHOT),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{source} is not Iceberg metadata of a view ({type(error).__name__}: {error})"
        raise CorruptFileError(message) from error


def shows_columns_of(metadata: ViewMetadata, schema: TableSchema) -> bool:
    """Return whether the current schema of the metadata has the columns of the table's."""
    shown, wanted = metadata.schemas[metadata.schema_id], iceberg_schema(schema)
    return _json({**shown, "schema-id": schema.id}) == _json(wanted)


def uuid_of_view(table_uuid: str) -> str:
    """Return the Iceberg table's uuid: the table's own, or one derived from its identity."""
    if _UUID.fullmatch(table_uuid):
        return table_uuid
    return str(UUID(bytes=blake2b(table_uuid.encode(), digest_size=16).digest(), version=4))


def _references(metadata: ViewMetadata) -> dict[str, dict[str, object]]:
    references: dict[str, dict[str, object]] = {
        name: {"snapshot-id": snapshot_id, "type": "tag"} for name, snapshot_id in sorted(metadata.tags.items())
    }
    if metadata.current is not None:
        references[MAIN] = {"snapshot-id": metadata.current.id, "type": "branch"}
    return references


def _snapshot(shown: ShownSnapshot) -> dict[str, object]:
    return {
        "snapshot-id": shown.id,
        **({} if shown.parent is None else {"parent-snapshot-id": shown.parent}),
        "sequence-number": shown.id,
        "timestamp-ms": shown.time_millis,
        "manifest-list": shown.manifest_list,
        "summary": dict(shown.summary),
        "schema-id": shown.schema_id,
        **({} if shown.first_row_id is None else {"first-row-id": shown.first_row_id, "added-rows": shown.added_rows}),
    }


def _shown(value: Mapping[str, Any]) -> ShownSnapshot:
    return ShownSnapshot(
        id=value["snapshot-id"],
        parent=value.get("parent-snapshot-id"),
        time_millis=value["timestamp-ms"],
        manifest_list=value["manifest-list"],
        summary=value["summary"],
        schema_id=value["schema-id"],
        first_row_id=value.get("first-row-id"),
        added_rows=value.get("added-rows", 0),
    )
