"""Deletion vectors as other engines write them: an index file, an index manifest, and a snapshot that refers to it."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyroaring import BitMap, BitMap64

from storage_lib.file_store.commit_message import CommitMessage
from storage_lib.file_store.data_file.deletion_vector import MAGIC_32, MAGIC_64
from storage_lib.file_store.manifest.manifest_schemas import INDEX_MANIFEST_SCHEMA
from storage_lib.file_store.merge_tree.increment import Increment
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from storage_lib.format.avro_container import encode_container
from tests.support.stored_table import StoredTable


def encoded_vector(positions: Sequence[int], *, wide: bool = False) -> bytes:
    """Return size, magic, bitmap and checksum; ``wide`` selects the 64-bit format."""
    body = MAGIC_64 + BitMap64(positions).serialize() if wide else MAGIC_32 + BitMap(positions).serialize()
    return len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


def mark_deleted(table: StoredTable, deleted: Mapping[str, Sequence[int]], *, wide: bool = False) -> Snapshot:
    """Commit a copy of the newest snapshot in which these rows of these data files are deleted."""
    latest = table.store.snapshots.latest()
    assert latest is not None
    name = f"mark-{latest.id}"
    data = b"\x01"
    records: dict[tuple[bytes, int], dict[str, object]] = {}
    for entry in table.store.scan.live_files(latest):
        if entry.file.file_name in deleted:
            positions = deleted[entry.file.file_name]
            vector = encoded_vector(positions, wide=wide)
            record = records.setdefault(
                (entry.partition, entry.bucket),
                {
                    "_VERSION": 1,
                    "_KIND": 0,
                    "_PARTITION": entry.partition,
                    "_BUCKET": entry.bucket,
                    "_INDEX_TYPE": "DELETION_VECTORS",
                    "_FILE_NAME": f"index-{name}-0",
                    "_FILE_SIZE": 0,
                    "_ROW_COUNT": 1,
                    "_DELETIONS_VECTORS_RANGES": [],
                },
            )
            ranges = record["_DELETIONS_VECTORS_RANGES"]
            assert isinstance(ranges, list)
            ranges.append(
                {
                    "f0": entry.file.file_name,
                    "f1": len(data),
                    "f2": len(vector) - (0 if wide else 8),
                    "_CARDINALITY": len(positions),
                }
            )
            data += vector
    for record in records.values():
        record["_FILE_SIZE"] = len(data)
    files = table.environment.file_io
    files.write_bytes(table.paths.index_path(f"index-{name}-0"), data)
    manifest = encode_container(INDEX_MANIFEST_SCHEMA, list(records.values()))
    files.write_bytes(table.paths.manifest_path(f"index-manifest-{name}-0"), manifest)
    marked = replace(
        latest,
        id=latest.id + 1,
        uuid=name,
        commit_kind=CommitKind.COMPACT,
        index_manifest=f"index-manifest-{name}-0",
        delta_record_count=0,
    )
    assert table.store.snapshots.append_if_absent(marked)
    return marked


def move_up(table: StoredTable, name: str) -> None:
    """Move a file from level 0 to level 4 without a merge, as a compaction with deletion vectors does."""
    plan = table.store.scan.plan(table.store.snapshots.latest())
    (entry,) = [entry for entry in plan.entries if entry.file.file_name == name]
    increment = Increment(compact_before=(entry.file,), compact_after=(replace(entry.file, level=4),))
    table.commit(
        [
            CommitMessage(
                partition=entry.partition, bucket=entry.bucket, bucket_count=entry.total_buckets, increment=increment
            )
        ]
    )
