"""Manifest entries for files that do not exist: ``entry("a", "ADD", low=1, high=5, level=2)``. Keys are numbers."""

from __future__ import annotations

from storage_lib.file_store.data_file.data_file_meta import SimpleStats
from storage_lib.file_store.manifest.manifest_entry import FileKind, ManifestEntry
from storage_lib.file_store.manifest.manifest_file import ManifestFileMeta
from tests.support.data_file_metas import NO_STATS, file_meta

UNPARTITIONED = bytes(12)


def entry(
    name: str,
    kind: str = "ADD",
    *,
    low: int = 0,
    high: int = 0,
    level: int = 0,
    partition: bytes = UNPARTITIONED,
    bucket: int = 0,
    total_buckets: int = 4,
) -> ManifestEntry:
    """Return the entry of one file with one key interval, added or deleted."""
    return ManifestEntry(
        kind=FileKind[kind],
        partition=partition,
        bucket=bucket,
        total_buckets=total_buckets,
        file=file_meta(name, low, high, level=level),
    )


def manifest(name: str, entries: int, *, size: int = 1000, deleted: int = 0) -> ManifestFileMeta:
    """Return a manifest's entry in a manifest list."""
    return ManifestFileMeta(
        file_name=name,
        file_size=size,
        num_added_files=entries - deleted,
        num_deleted_files=deleted,
        partition_stats=no_bounds(()),
        schema_id=0,
    )


def no_bounds(_: object) -> SimpleStats:
    """Return partition statistics for tests in which partitions don't matter."""
    return NO_STATS
