"""Which rows stand after files were added, of the keys in these files; all others stand or not as before.

1. The keys of the added files are searched in each older file. Keys stay in memory, so that a file that has been
   searched before is opened only for what else orders or deletes its rows.
2. All versions found are merged as ``read_merged`` does: the places of the rows that it yields are those that stand.

The cost follows from the number of added rows and of files, and not from the number of rows in the files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.data_file_reader import DataFileReader
from storage_lib.file_store.data_file.key_range import KeyRange
from storage_lib.file_store.data_file.key_value import KEY_PREFIX, VALUE_KIND, KeyValueSchema
from storage_lib.file_store.merge_tree.counting_rows import counting_rows
from storage_lib.file_store.merge_tree.known_keys import KnownKeys
from storage_lib.file_store.merge_tree.merge_function.merge_function import MergeFunction, without_retracts
from storage_lib.file_store.merge_tree.merge_keys import Indices, IntegerKeys, MergeKeys, as_integers, merge_keys
from storage_lib.file_store.merge_tree.merge_tree_reader import BATCH_ROWS_MAX, ranks_of
from storage_lib.file_store.merge_tree.merge_versions import merge_versions
from storage_lib.file_store.merge_tree.standing.coded_keys import KeysOfFiles

_PLACE = KEY_PREFIX
"""A name that no column has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingPositions:
    """Rows of one file with a key of the added files: positions of those that stand, and of the others."""

    file_name: str
    stands: Indices
    hidden: Indices


def standing_of_added(
    files: Sequence[DataFileMeta],
    added: Collection[str],
    *,
    reader: DataFileReader,
    key_value: KeyValueSchema,
    merge_function: MergeFunction,
    lowest_counts: bool,
    known_keys: KnownKeys,
) -> list[StandingPositions] | None:
    """Return which rows with a key of the ``added`` files stand; None if sequence numbers of files overlap.

    Then writers did not see each other's rows, and only a merge of whole files decides between equal numbers.
    REQUIRES all files of a bucket that share keys, none with a deletion vector, and a merge function that chooses one
    of the versions. Raises as ``read_merged``.
    """
    ranks = ranks_of(files)
    if ranks is None:
        return None
    has_deletes = any(file.delete_row_count != 0 for file in files)
    columns = (*((VALUE_KIND,) if has_deletes else ()), *sorted(merge_function.columns_for(frozenset())))
    search = _Search(reader, key_value, key_value.projection(columns), known_keys)
    new = [file for file in files if file.file_name in added]
    pieces = [piece for file in new for piece in search.all_of(file)]
    if not pieces:
        return []
    keys = pieces[0].keys.concat([piece.keys for piece in pieces[1:]])
    keys = keys.take(keys.newest(ordered=True))
    low = min(key_value.comparable_key(file.min_key) for file in new)
    high = max(key_value.comparable_key(file.max_key) for file in new)
    within = KeyRange(low=low, high=None)
    older = [
        file
        for file in files
        if file.file_name not in added
        and key_value.comparable_key(file.min_key) <= high
        and key_value.comparable_key(file.max_key) >= low
    ]
    pieces += search.found_in(older, keys, within)
    pieces.sort(key=lambda piece: ranks[piece.file.file_name])
    return list(_by_file(pieces, _standing(pieces, search.columns, merge_function, lowest_counts=lowest_counts)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """Some rows of a file: ascending positions, keys, and the columns that a merge needs besides."""

    file: DataFileMeta
    positions: Indices
    keys: MergeKeys
    columns: Sequence[pa.Array]


class _Search:
    """Finds rows by key in the files of a bucket, with some ``columns`` of theirs."""

    def __init__(self, reader: DataFileReader, key_value: KeyValueSchema, columns: pa.Schema, known: KnownKeys) -> None:
        self._reader = reader
        self._known = known
        self._keys_of = KeysOfFiles(reader, key_value, known)
        self._key_value = key_value
        self.columns = columns

    def all_of(self, file: DataFileMeta) -> Iterator[_Piece]:
        """Yield all rows of a file."""
        places = self._reader.key_places(file, None)
        if places is not None:
            yield from self._indexed(file, positions=places[0], keys=IntegerKeys(places[1]))
            return
        if file.file_size <= self._known.packed_bytes_max:
            known = self._keys_of.known(file)
            yield from self._indexed(file, positions=np.arange(len(known)), keys=known)
            return
        for start, batch in self._read(file, None):
            positions = np.arange(start, start + batch.num_rows)
            yield _Piece(file=file, positions=positions, keys=self._keys(batch), columns=self._columns(file, batch))

    def found_in(self, files: Sequence[DataFileMeta], keys: MergeKeys, within: KeyRange) -> Iterator[_Piece]:
        """Yield the rows of the files with one of these ascending keys, which are ``within`` the range."""
        known: list[tuple[DataFileMeta, MergeKeys]] = []
        packed_bytes = 0
        for file in files:
            places = self._reader.key_places(file, keys.values) if isinstance(keys, IntegerKeys) else None
            if places is not None:
                yield from self._indexed(file, positions=places[0], keys=IntegerKeys(places[1]))
            elif file.file_size > self._known.packed_bytes_max:
                yield from self._found_by_reading(file, keys, within)
            else:
                known.append((file, self._keys_of.known(file)))
                packed_bytes += file.file_size
                if packed_bytes > self._known.packed_bytes_max:
                    yield from self._found_in_known(known, keys)
                    known, packed_bytes = [], 0
        yield from self._found_in_known(known, keys)

    def _found_in_known(self, known: Sequence[tuple[DataFileMeta, MergeKeys]], keys: MergeKeys) -> Iterator[_Piece]:
        """Yield the rows of some files by their keys, those of frames by one join for all files."""
        if not known or isinstance(keys, IntegerKeys):
            for file, mine in known:
                here = np.sort(mine.matches(keys)[0])
                yield from self._indexed(file, positions=here, keys=mine.take(here))
            return
        together = known[0][1].concat([mine for _, mine in known[1:]])
        found = np.sort(together.matches(keys)[0])
        ends = np.cumsum([len(mine) for _, mine in known])
        cuts = np.searchsorted(found, [0, *ends])
        for place, (file, mine) in enumerate(known):
            here = found[cuts[place] : cuts[place + 1]] - (ends[place] - len(mine))
            if len(here):
                yield from self._indexed(file, positions=here, keys=mine.take(here))

    def _found_by_reading(self, file: DataFileMeta, keys: MergeKeys, within: KeyRange) -> Iterator[_Piece]:
        last = keys.key_at(len(keys) - 1)
        for start, batch in self._read(file, within):
            mine = self._keys(batch)
            if mine.key_at(0) > last:
                return
            here = np.sort(mine.matches(keys)[0])
            if len(here):
                columns = self._columns(file, batch.take(pa.array(here)))
                yield _Piece(file=file, positions=here + start, keys=mine.take(here), columns=columns)

    def _indexed(self, file: DataFileMeta, *, positions: Indices, keys: MergeKeys) -> Iterator[_Piece]:
        start = 0
        if len(positions) and self._names_in(file):
            for batch in self._reader.read_at(file, self._names_in(file), positions):
                stop = start + batch.num_rows
                columns = self._columns(file, batch)
                yield _Piece(file=file, positions=positions[start:stop], keys=keys.slice(start, stop), columns=columns)
                start = stop
        elif len(positions):
            columns = [_no_kinds(len(positions)) for _ in self.columns]
            yield _Piece(file=file, positions=positions, keys=keys, columns=columns)

    def _read(self, file: DataFileMeta, within: KeyRange | None) -> Iterator[tuple[int, pa.RecordBatch]]:
        names = tuple(dict.fromkeys((*self._key_value.key_names, *self._names_in(file))))
        return self._reader.read_placed(file, names, key_range=within, batch_rows=BATCH_ROWS_MAX)

    def _names_in(self, file: DataFileMeta) -> list[str]:
        """Return the columns to read: without the kinds of a file that has no deletions."""
        return [name for name in self.columns.names if name != VALUE_KIND or file.delete_row_count != 0]

    def _columns(self, file: DataFileMeta, batch: pa.RecordBatch) -> list[pa.Array]:
        there = self._names_in(file)
        return [batch.column(name) if name in there else _no_kinds(batch.num_rows) for name in self.columns.names]

    def _keys(self, batch: pa.RecordBatch) -> MergeKeys:
        return merge_keys(self._key_value.key_columns(batch), self._key_value.key_types)


def _no_kinds(count: int) -> pa.Array:
    return pa.array(np.zeros(count, dtype=np.int8))


def _standing(
    pieces: Sequence[_Piece], columns: pa.Schema, merge_function: MergeFunction, *, lowest_counts: bool
) -> npt.NDArray[np.bool_]:
    """Return for each row of the pieces, which come oldest first, whether it stands."""
    parts = as_integers([piece.keys for piece in pieces])
    keys = parts[0].concat(parts[1:])
    count = len(keys)
    arrays = [pa.concat_arrays([piece.columns[place] for piece in pieces]) for place in range(len(columns))]
    rows = pa.RecordBatch.from_arrays(
        [*arrays, pa.array(np.arange(count))], schema=columns.append(pa.field(_PLACE, pa.int64(), nullable=False))
    )
    if lowest_counts and not merge_function.keeps_newest:
        levels = np.repeat([piece.file.level for piece in pieces], [len(piece.positions) for piece in pieces])
        counting = counting_rows(keys, levels)
        if counting is not None:
            rows, keys = rows.take(pa.array(counting)), keys.take(counting)
    merged = merge_versions(rows, keys, merge_function, final=True)
    if VALUE_KIND in columns.names:
        merged = without_retracts(merged, merged.column(VALUE_KIND))
    stands = np.zeros(count, dtype=np.bool_)
    stands[merged.column(_PLACE).to_numpy()] = True
    return stands


def _by_file(pieces: Sequence[_Piece], stands: npt.NDArray[np.bool_]) -> Iterator[StandingPositions]:
    start = 0
    for file_name, of_file in groupby(pieces, key=lambda piece: piece.file.file_name):
        positions = np.concatenate([piece.positions for piece in of_file])
        here = stands[start : start + len(positions)]
        start += len(positions)
        yield StandingPositions(file_name=file_name, stands=positions[here], hidden=positions[~here])
