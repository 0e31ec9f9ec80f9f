"""Compaction that marks old versions as deleted in deletion vectors, so that its output is read without a merge.

    level 0   [a] [b]          the unit: merged, and moved up to level 4
    level 4   (a+b)
    level 5   [c x x][d  x ]   others: only their keys are read; x is marked, since (a+b) has a newer version

Delete rows are dropped once the rows that they delete are marked. All vectors of a bucket are in one index
file, which is rewritten by every compaction, as other engines expect (docs/format.md, 1.13).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.deletion_vector import encode_index_file
from storage_lib.file_store.merge_tree.compaction.compaction_strategy import CompactionUnit
from storage_lib.file_store.merge_tree.compaction.compactor import Compactor
from storage_lib.file_store.merge_tree.compaction.key_intervals import CoveredKeys, intervals_of
from storage_lib.file_store.merge_tree.increment import BucketVectors, Increment
from storage_lib.file_store.merge_tree.merge_keys import MergeKeys, merge_keys
from storage_lib.file_store.merge_tree.merge_tree_reader import BATCH_ROWS_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkingCompactor:
    """Compacts one bucket of a table with deletion vectors; ``compactor`` merges the rows."""

    compactor: Compactor

    def compact(self, unit: CompactionUnit) -> Increment:
        """Compact as ``Compactor.compact``, with the bucket's new vectors; files without live rows are removed."""
        others = unit.others or ()
        increment = self.compactor.compact(unit)
        try:
            deleted = self._deleted_after(unit, others, increment)
            emptied = tuple(file for file in others if len(deleted.get(file.file_name, ())) == file.row_count)
            for file in emptied:
                del deleted[file.file_name]
            return replace(
                increment,
                compact_before=(*increment.compact_before, *emptied),
                vectors=self._stored(deleted, seen=(*(file for file in unit.files if file.level > 0), *others)),
            )
        except BaseException:
            self.compactor.abort(increment)
            raise

    def take_unsynced(self) -> list[str]:
        """Return the paths to make durable before the commit; an index file is already durable."""
        return self.compactor.take_unsynced()

    def _deleted_after(
        self, unit: CompactionUnit, others: Sequence[DataFileMeta], increment: Increment
    ) -> dict[str, npt.NDArray[np.int64]]:
        """Return the marked positions of each remaining file that has any."""
        moved = {file.file_name for file in increment.compact_after}
        rewritten = {file.file_name for file in increment.compact_before} - moved
        unchanged = [file for file in unit.files if file.file_name not in rewritten]
        deleted = {file.file_name: self.compactor.reader.deleted_rows(file) for file in (*unchanged, *others)}
        fresh = [file for file in unit.files if file.level == 0]
        covered = CoveredKeys(intervals_of(fresh), self.compactor.key_value.comparable_key)
        touched = [file for file, interval in zip(others, intervals_of(others), strict=True) if covered.touch(interval)]
        if touched:
            newer = self._keys_of(fresh)
            for file in touched:
                superseded = self._rows_of(file, newer)
                deleted[file.file_name] = np.union1d(deleted[file.file_name], superseded)
        return {name: positions for name, positions in deleted.items() if len(positions)}

    def _keys_of(self, files: Iterable[DataFileMeta]) -> MergeKeys:
        """Return the distinct keys of at least one file, sorted."""
        parts = [keys for file in files for _, keys in self._keyed(file)]
        together = parts[0].concat(parts[1:])
        return together.take(together.newest(ordered=True))

    def _rows_of(self, file: DataFileMeta, keys: MergeKeys) -> npt.NDArray[np.int64]:
        """Return the positions of these keys in the file."""
        hits = [start + keys.matches(part)[1] for start, part in self._keyed(file)]
        return np.concatenate(hits) if hits else np.zeros(0, dtype=np.int64)

    def _keyed(self, file: DataFileMeta) -> Iterable[tuple[int, MergeKeys]]:
        """Yield all keys of a file, batch by batch, with the position of each batch's first key."""
        key_value = self.compactor.key_value
        start = 0
        # Positions include marked rows.
        whole = replace(file, deletion_file=None)
        for batch in self.compactor.reader.read(whole, key_value.key_names, batch_rows=BATCH_ROWS_MAX):
            yield start, merge_keys([batch.column(name) for name in key_value.key_names], key_value.key_types)
            start += batch.num_rows

    def _stored(self, deleted: dict[str, npt.NDArray[np.int64]], seen: tuple[DataFileMeta, ...]) -> BucketVectors:
        if not deleted:
            return BucketVectors(index_file=None, size_bytes=0, ranges={}, seen=seen)
        data, ranges = encode_index_file(deleted)
        name = self.compactor.data_files.write_index(data)
        return BucketVectors(index_file=name, size_bytes=len(data), ranges=ranges, seen=seen)
