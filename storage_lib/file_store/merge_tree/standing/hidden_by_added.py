"""Which rows no longer stand after files were added whose rows replace all older ones with their keys.

So it is with ``merge-engine=deduplicate`` without sequence fields, as long as no older file has newer rows. Before, at
most one row of a key stood: its newest one. So the newest places of the keys among the older files are enough, and
no rows have to be merged. An index has the keys of a bucket's small files; large ones, of which a commit may need a
part, are searched one by one, if their keys are integers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.data_file_reader import DataFileReader
from storage_lib.file_store.data_file.key_value import VALUE_KIND, KeyValueSchema
from storage_lib.file_store.merge_tree.known_keys import KnownKeys
from storage_lib.file_store.merge_tree.merge_function.merge_function import retracts
from storage_lib.file_store.merge_tree.merge_keys import FrameKeys, Indices
from storage_lib.file_store.merge_tree.merge_tree_reader import BATCH_ROWS_MAX, ranks_of
from storage_lib.file_store.merge_tree.standing.coded_keys import CodedKeys, Codes, KeysOfFiles
from storage_lib.file_store.merge_tree.standing.newest_places import ENTRY_BYTES, NewestPlaces

_INDEXED_SHARE = 1 / 2
"""Rows of the largest file that is indexed, as a share of those of an index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenByAdded:
    """Positions that stand no longer, by file name, and the index for the next commit."""

    positions: Mapping[str, Indices]
    index: NewestPlaces


def hidden_by_added(
    files: Sequence[DataFileMeta],
    added: Collection[str],
    *,
    reader: DataFileReader,
    key_value: KeyValueSchema,
    known_keys: KnownKeys,
    index: NewestPlaces,
    index_bytes_max: int,
) -> HiddenByAdded | None:
    """Return the rows that stand no longer, and those of the ``added`` files that delete.

    None if an added file is not newer than all others, if a file can't be searched for its keys, or if hashes of
    different keys are equal. ``index`` is the one that a former call returned. REQUIRES the live files of a bucket,
    none with a deletion vector, and a merge function that keeps the newest version. Raises as ``read_merged``.
    """
    ranks = ranks_of(files)
    if ranks is None:
        return None
    in_order = sorted(files, key=lambda file: ranks[file.file_name])
    older, new = in_order[: len(files) - len(added)], in_order[len(files) - len(added) :]
    if any(file.file_name in added for file in older):
        return None
    keys_of = KeysOfFiles(reader, key_value, known_keys)
    search = _Search(reader, key_value, keys_of, older, index, rows_max=index_bytes_max // ENTRY_BYTES)
    found: dict[str, list[Indices]] = defaultdict(list)
    for file in new:
        keys = keys_of.coded(file)
        replaced = None if keys is None else search.add(file, keys)
        if replaced is None:
            return None
        for name, positions in replaced:
            found[name].append(positions)
        if file.delete_row_count != 0:
            found[file.file_name].append(_deletions(reader, file))
    return HiddenByAdded(positions={name: np.concatenate(parts) for name, parts in found.items()}, index=search.index)


class _Search:
    """Finds the newest rows of keys in files that are added one by one, the oldest first."""

    def __init__(
        self,
        reader: DataFileReader,
        key_value: KeyValueSchema,
        keys_of: KeysOfFiles,
        files: Sequence[DataFileMeta],
        index: NewestPlaces,
        *,
        rows_max: int,
    ) -> None:
        """``index`` has some of the ``files``, or of files that are gone; up to ``rows_max`` rows."""
        self._reader = reader
        self._key_value = key_value
        self._keys_of = keys_of
        self._rows_max = rows_max
        self._files = {file.file_name: file for file in files}
        place = {file.file_name: number for number, file in enumerate(files)}
        # A compaction may have replaced some of its files.
        self.index = index if place.keys() >= set(index.names) else NewestPlaces()
        numbers = [place[name] for name in self.index.names]
        first = min(numbers) if numbers else self._first_to_index(files)
        # Files that are not indexed: those older than all that are, and the others.
        self._before = list(files[:first])
        self._beside = [files[number] for number in sorted(set(range(first, max(numbers, default=-1))) - set(numbers))]
        for file in files[max(numbers, default=first - 1) + 1 :]:
            keys = keys_of.coded(file) if self._is_small(file) else None
            if keys is None:
                self._keep_beside(file)
            else:
                self.index = self.index.with_file(file.file_name, keys.codes, keys.positions)

    def add(self, file: DataFileMeta, keys: CodedKeys) -> list[tuple[str, Indices]] | None:
        """Add a file that is newer than the others.

        Return file names and positions of the rows that it replaces: the newest one of each key, and maybe older ones.
        None if a file can't be searched.
        """
        beside = self._one_by_one(self._beside, file, keys, keys.codes)
        if self._is_small(file):
            self.index, indexed, rest = self.index.replacing(file.file_name, keys.codes, keys.positions)
        else:
            indexed, rest = self.index.find(keys.codes)
        before = self._one_by_one(self._before, file, keys, rest)
        if not self._is_small(file):
            self._keep_beside(file)
        if beside is None or before is None or not self._have(keys.keys, indexed):
            return None
        self._files[file.file_name] = file
        return [*beside, *indexed.items(), *before]

    def _keep_beside(self, file: DataFileMeta) -> None:
        (self._beside if self.index.names else self._before).append(file)

    def _one_by_one(
        self, files: Sequence[DataFileMeta], added: DataFileMeta, keys: CodedKeys, codes: Codes
    ) -> list[tuple[str, Indices]] | None:
        """Search files for the keys with these codes, newest first; None if one can't be searched."""
        low, high = (self._key_value.comparable_key(key) for key in (added.min_key, added.max_key))
        found = []
        for file in reversed(files):
            if not len(codes):
                break
            lowest, highest = (self._key_value.comparable_key(key) for key in (file.min_key, file.max_key))
            if lowest > high or highest < low:
                continue
            places = self._reader.key_places(file, codes) if keys.keys is None else None
            if places is None:
                return None
            positions, mine = places
            if len(positions):
                found.append((file.file_name, positions))
                codes = np.delete(codes, np.searchsorted(codes, mine))
        return found

    def _have(self, keys: FrameKeys | None, found: Mapping[str, Indices]) -> bool:
        """Return whether all rows that were found by hashes have one of the keys; None: their codes are the keys."""
        if keys is None or not found:
            return True
        parts = [self._keys_of.known(self._files[name]).take(positions) for name, positions in found.items()]
        theirs = parts[0].concat(parts[1:])
        return isinstance(theirs, FrameKeys) and len(keys.matches(theirs)[0]) == len(theirs)

    def _is_small(self, file: DataFileMeta) -> bool:
        return file.row_count <= self._rows_max * _INDEXED_SHARE

    def _first_to_index(self, files: Sequence[DataFileMeta]) -> int:
        """Return the first file for a new index, half of which stays free for files that are added later."""
        rows = 0
        for number in range(len(files) - 1, -1, -1):
            rows += files[number].row_count if self._is_small(files[number]) else 0
            if rows > self._rows_max // 2:
                return number + 1
        return 0


def _deletions(reader: DataFileReader, file: DataFileMeta) -> Indices:
    """Return the positions of the rows of a file that delete their key."""
    found = [np.zeros(0, dtype=np.int64)]
    for start, batch in reader.read_placed(file, (VALUE_KIND,), batch_rows=BATCH_ROWS_MAX):
        found.append(np.flatnonzero(retracts(batch.column(VALUE_KIND))) + start)
    return np.concatenate(found)
