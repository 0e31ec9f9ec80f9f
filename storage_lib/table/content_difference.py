"""What lies between two contents of a table, bucket by bucket: the net change that turns one into the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.live_files import LiveFiles
from storage_lib.file_store.split import Split
from storage_lib.file_store.store import FileStore
from storage_lib.schema.table_schema import TableSchema
from storage_lib.table.multiset_change import multiset_difference
from storage_lib.table.net_change import net_change

Place: TypeAlias = tuple[bytes, int]
"""Partition (serialized) and bucket."""

FilesByPlace: TypeAlias = Mapping[Place, Sequence[DataFileMeta]]


class ContentDifference:
    """Compares rows; no more than one bucket's old and new rows are in memory."""

    def __init__(self, *, file_store: FileStore, schema: TableSchema, with_update_before: bool) -> None:
        self._file_store = file_store
        self._schema = schema
        self._with_update_before = with_update_before

    def between(
        self, old: FilesByPlace, new: FilesByPlace, *, snapshot_id: int
    ) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """The changes (rows, int8 kinds) from the rows of ``old`` to those of ``new``, place by place.

        ``snapshot_id`` is that of the newest snapshot which still has to be there, for messages.
        """
        for place in sorted({*old, *new}):
            before = self._rows(place, old.get(place, ()), snapshot_id)
            after = self._rows(place, new.get(place, ()), snapshot_id)
            if self._schema.primary_keys:
                keys, with_before = self._schema.primary_keys, self._with_update_before
                yield from net_change(before, after, keys, with_update_before=with_before)
            else:
                yield from multiset_difference(before, after)

    def _rows(self, place: Place, files: Sequence[DataFileMeta], snapshot_id: int) -> pa.Table:
        batches: Iterator[pa.RecordBatch] = iter(())
        if files:
            partition, bucket = place
            split = Split(snapshot_id=snapshot_id, partition=partition, bucket=bucket, files=tuple(files))
            batches = self._file_store.read.read(split)
        return pa.Table.from_batches(batches, schema=self._schema.arrow_schema)


def places_that_differ(old: LiveFiles, new: LiveFiles) -> tuple[FilesByPlace, FilesByPlace]:
    """The files of every bucket that does not consist of the same files in both, by place: old and new."""
    before: dict[Place, list[DataFileMeta]] = {}
    after: dict[Place, list[DataFileMeta]] = {}
    places = {
        (partition, bucket)
        for live in (old, new)
        for partition in live.partitions
        for bucket in live.buckets_of(partition)
    }
    for partition, bucket in places:
        first = {entry.file.identity: entry.file for entry in old.of(partition, bucket)}
        second = {entry.file.identity: entry.file for entry in new.of(partition, bucket)}
        if first.keys() != second.keys():
            before[partition, bucket] = list(first.values())
            after[partition, bucket] = list(second.values())
    return before, after
