"""Net change between two contents of a table, bucket by bucket."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.merge_tree.merge_function.merge_function import retracts
from storage_lib.file_store.planning.live_files import LiveFiles
from storage_lib.file_store.split import Split
from storage_lib.file_store.store import FileStore
from storage_lib.schema.table_schema import TableSchema
from storage_lib.table.changes.multiset_change import multiset_difference, summed_changes
from storage_lib.table.changes.net_change import net_change

Place: TypeAlias = tuple[bytes, int]
"""Partition (serialized) and bucket."""

FilesByPlace: TypeAlias = Mapping[Place, Sequence[DataFileMeta]]


class SnapshotDiff:
    """Compares rows; at most one bucket's old and new rows are in memory.

    If rows are merged (``merges``), the changes of each append are found by such a comparison. Then only rows with keys
    of added and removed files are held: a key whose versions are all in unchanged files is unchanged.
    """

    def __init__(
        self, *, file_store: FileStore, schema: TableSchema, with_update_before: bool, merges: bool = False
    ) -> None:
        self._file_store = file_store
        self._schema = schema
        self._with_update_before = with_update_before
        self._merges = merges

    def with_old_rows(self) -> SnapshotDiff:
        """Return the same diff with each changed row as a pair of ``-U`` and ``+U``."""
        return SnapshotDiff(
            file_store=self._file_store, schema=self._schema, with_update_before=True, merges=self._merges
        )

    def between(
        self, old: FilesByPlace, new: FilesByPlace, *, snapshot_id: int
    ) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """Yield the changes (rows, int8 kinds) from the rows of ``old`` to those of ``new``, place by place.

        ``snapshot_id``, used in messages, is the newest snapshot whose files are needed.
        """
        for place in sorted({*old, *new}):
            old_files, new_files = old.get(place, ()), new.get(place, ())
            if self._schema.counts_values:
                yield from self._difference_of_counts(place, old_files, new_files, snapshot_id)
                continue
            keys = None
            if self._merges:
                old_files, new_files = self._touched(old_files, new_files)
                keys = self._keys(place, _differing(old_files, new_files), snapshot_id)
            before = self._rows(place, old_files, snapshot_id, keys)
            after = self._rows(place, new_files, snapshot_id, keys)
            if self._schema.primary_keys:
                primary_keys, with_before = self._schema.primary_keys, self._with_update_before
                yield from net_change(before, after, primary_keys, with_update_before=with_before)
            else:
                yield from multiset_difference(before, after)

    def _difference_of_counts(
        self, place: Place, old: Sequence[DataFileMeta], new: Sequence[DataFileMeta], snapshot_id: int
    ) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """Compare raw counts, which may be negative if a row was deleted before it was inserted.

        Counts of files that are in both contents cancel out.
        """
        differing = {file.file_name for file in _differing(old, new)}
        batches: list[pa.RecordBatch] = []
        counts = [np.zeros(0, dtype=np.int64)]
        for files, sign in ((old, -1), (new, 1)):
            chosen = [file for file in files if file.file_name in differing]
            if not chosen:
                continue
            for rows, kinds in self._file_store.read.changes(_split(place, chosen, snapshot_id)):
                batches.append(rows)
                counts.append(np.where(retracts(kinds), -sign, sign).astype(np.int64))
        yield from summed_changes(
            pa.Table.from_batches(batches, schema=self._schema.arrow_schema), np.concatenate(counts)
        )

    def _rows(
        self, place: Place, files: Sequence[DataFileMeta], snapshot_id: int, keys: pl.DataFrame | None
    ) -> pa.Table:
        batches: Iterator[pa.RecordBatch] = iter(())
        if files:
            batches = self._file_store.read.read(_split(place, files, snapshot_id))
        if keys is not None:
            batches = (batch.filter(self._is_among(batch, keys)) for batch in batches)
        return pa.Table.from_batches(batches, schema=self._schema.arrow_schema)

    def _touched(
        self, old: Sequence[DataFileMeta], new: Sequence[DataFileMeta]
    ) -> tuple[list[DataFileMeta], list[DataFileMeta]]:
        """Return both without the files whose keys overlap no added or removed file, not even through other files."""
        differing = {file.file_name for file in _differing(old, new)}
        by_name = {file.file_name: file for file in (*old, *new)}
        touched = {
            file.file_name
            for group in self._file_store.scan.grouping.groups(list(by_name.values()))
            if not differing.isdisjoint(file.file_name for file in group)
            for file in group
        }
        return [file for file in old if file.file_name in touched], [file for file in new if file.file_name in touched]

    def _keys(self, place: Place, files: Sequence[DataFileMeta], snapshot_id: int) -> pl.DataFrame:
        """Return the distinct keys in these files."""
        changes = self._file_store.read.changes(_split(place, files, snapshot_id)) if files else ()
        frames = [self._key_frame(rows).unique() for rows, _ in changes]
        empty = self._key_frame(pa.RecordBatch.from_pylist([], self._schema.arrow_schema))
        return pl.concat([empty, *frames]).unique()

    def _is_among(self, rows: pa.RecordBatch, keys: pl.DataFrame) -> pa.BooleanArray:
        frame = self._key_frame(rows)
        found = frame.with_row_index(_ROW).join(keys, on=frame.columns, how="semi")[_ROW]
        mask = np.zeros(rows.num_rows, dtype=np.bool_)
        mask[found.to_numpy()] = True
        return pa.array(mask)

    def _key_frame(self, rows: pa.RecordBatch) -> pl.DataFrame:
        # Polars reads names such as "*" as patterns, so columns are named by position.
        names = enumerate(self._schema.trimmed_primary_keys)
        return pl.DataFrame({f"key {place}": pl.Series(pl.from_arrow(rows.column(name))) for place, name in names})


_ROW = "row"


def _split(place: Place, files: Sequence[DataFileMeta], snapshot_id: int) -> Split:
    partition, bucket = place
    return Split(snapshot_id=snapshot_id, partition=partition, bucket=bucket, files=tuple(files))


def _differing(old: Sequence[DataFileMeta], new: Sequence[DataFileMeta]) -> list[DataFileMeta]:
    """Return files that are in only one of the two, or have different deletion vectors.

    A file that was moved to another level is in both.
    """
    before, after = ({(file.file_name, file.deletion_file) for file in files} for files in (old, new))
    same = before & after
    return [file for file in (*old, *new) if (file.file_name, file.deletion_file) not in same]


def places_that_differ(old: LiveFiles, new: LiveFiles) -> tuple[FilesByPlace, FilesByPlace]:
    """Return the old and the new files, by place, of every bucket whose files differ.

    A file with a different deletion vector differs.
    """
    before: dict[Place, list[DataFileMeta]] = {}
    after: dict[Place, list[DataFileMeta]] = {}
    places = {
        (partition, bucket)
        for live in (old, new)
        for partition in live.partitions
        for bucket in live.buckets_of(partition)
    }
    for partition, bucket in places:
        first, second = (
            {(entry.file.identity, entry.file.deletion_file): entry.file for entry in live.of(partition, bucket)}
            for live in (old, new)
        )
        if first.keys() != second.keys():
            before[partition, bucket] = list(first.values())
            after[partition, bucket] = list(second.values())
    return before, after
