"""Merged read of one bucket: sections that share no key are read in sequence, overlapping runs are merged.

Only the needed columns are read: no keys and no sequence numbers for a single run, no sequence numbers if the files'
sequence intervals show which is newer, no kinds if no file has deletions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.data_file.comparable_key import ComparableKey, column_key
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.key_range import KeyRange
from storage_lib.file_store.data_file.key_value import SEQUENCE_NUMBER, VALUE_KIND, KeyValueSchema
from storage_lib.file_store.merge_tree.history_merge import HistoryMerge, Merged
from storage_lib.file_store.merge_tree.interval_partition import Section, interval_partition
from storage_lib.file_store.merge_tree.merge_function.deduplicate import DEDUPLICATE
from storage_lib.file_store.merge_tree.merge_function.merge_function import MergeFunction, without_retracts
from storage_lib.file_store.merge_tree.merge_keys import MergeKeys, merge_keys
from storage_lib.file_store.merge_tree.sort_merge import (
    KeyedBatch,
    cut_pieces,
    sort_merge,
    sort_merge_with,
)
from storage_lib.file_store.merge_tree.sorted_run import SortedRun
from storage_lib.schema.filter.predicate import Predicate

MERGE_BYTES_MAX = 48 * 1024 * 1024
BATCH_ROWS_MAX = 131_072


class RunReader(Protocol):
    """The part of ``DataFileReader`` that a merge uses."""

    def read(
        self,
        file: DataFileMeta,
        columns: Sequence[str],
        *,
        predicate: Predicate | None = None,
        key_range: KeyRange | None = None,
        batch_rows: int,
    ) -> Iterator[pa.RecordBatch]:
        """Yield batches of the file's rows; see ``DataFileReader.read``."""


def read_merged(
    files: Sequence[DataFileMeta],
    *,
    reader: RunReader,
    key_value: KeyValueSchema,
    merge_function: MergeFunction = DEDUPLICATE,
    columns: Sequence[str],
    predicate: Predicate | None = None,
    drop_deletes: bool = True,
    with_kv: bool = False,
    ordered: bool = False,
    lowest_counts: bool = False,
    key_range: KeyRange | None = None,
    merge_bytes_max: int = MERGE_BYTES_MAX,
) -> Iterator[pa.RecordBatch]:
    """Merge each key's versions, and yield non-empty batches of ``columns`` in the given order.

    Rows that don't match ``predicate`` are omitted. ``with_kv`` puts ``_SEQUENCE_NUMBER`` and ``_VALUE_KIND`` first.
    ``ordered`` sorts the whole output by key. ``drop_deletes=False`` keeps delete rows. ``lowest_counts`` is
    for tables whose rows above level 0 are complete (``counting_rows.py``).
    ``key_range`` restricts the read to rows with these keys; row groups of other keys are not decoded.
    ``merge_bytes_max`` limits, approximately, the decoded rows that a merge holds at once, whatever the bucket's size.
    Raises ``NotFoundError`` or ``CorruptFileError`` naming the file.
    """
    if not columns and not with_kv:
        message = "A read needs at least one column; ask for a key column to count rows."
        raise InvalidInputError(message)
    output = (*((SEQUENCE_NUMBER, VALUE_KIND) if with_kv else ()), *columns)
    read = _Read(
        reader=reader,
        key_value=key_value,
        merge_function=merge_function,
        output=output,
        predicate=predicate,
        drop_deletes=drop_deletes,
        lowest_counts=lowest_counts,
        key_range=key_range,
        row_bounds=None if key_range is None else _row_bounds(key_range, key_value),
    )
    for section in interval_partition(files, key_value.comparable_key):
        if len(section) == 1:
            yield from read.raw(section[0])
        else:
            yield from read.merged(section, ordered=ordered, merge_bytes_max=merge_bytes_max)


def read_with_history(
    files: Sequence[DataFileMeta],
    *,
    looked_up: Sequence[DataFileMeta],
    reader: RunReader,
    history: HistoryMerge,
    drops_deletes: bool,
    merge_bytes_max: int = MERGE_BYTES_MAX,
) -> Iterator[Merged]:
    """Merge the files' rows with the rows in ``looked_up`` that have the same keys; yield results sorted by key."""
    read = _Read(
        reader=reader,
        key_value=history.key_value,
        merge_function=history.merge_function,
        output=(SEQUENCE_NUMBER, VALUE_KIND, *history.key_value.value_names),
        predicate=None,
        drop_deletes=False,
        lowest_counts=False,
    )
    names = {file.file_name for file in looked_up}
    for section in interval_partition([*files, *looked_up], history.key_value.comparable_key):
        if all(file.file_name in names for run in section for file in run.files):
            continue
        for cuts in cut_pieces(read.keyed(section, merge_bytes_max, looked_up=names)):
            merged = history.merge(cuts, drops_deletes=drops_deletes)
            if merged is not None:
                yield merged


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    reader: RunReader
    key_value: KeyValueSchema
    merge_function: MergeFunction
    output: tuple[str, ...]
    predicate: Predicate | None
    drop_deletes: bool
    lowest_counts: bool
    key_range: KeyRange | None = None
    row_bounds: tuple[ComparableKey | None, ComparableKey | None] | None = None
    """The key range as values of the key columns, which ``MergeKeys`` compares."""

    def raw(self, run: SortedRun) -> Iterator[pa.RecordBatch]:
        for file in run.files:
            key_range = None if self._is_in_range(file) else self.key_range
            kinds = (VALUE_KIND,) if self._has_deletes([file]) else ()
            keys = () if key_range is None else self.key_value.key_names
            columns = self._columns_with(*kinds, *keys)
            for batch in self.reader.read(
                file, columns, predicate=self.predicate, key_range=key_range, batch_rows=BATCH_ROWS_MAX
            ):
                if key_range is None:
                    yield from self._finished(batch)
                    continue
                start, stop = self._rows_in_range(self._keys_of(batch))
                if start < stop:
                    yield from self._finished(batch.slice(start, stop - start))

    def merged(self, section: Section, *, ordered: bool, merge_bytes_max: int) -> Iterator[pa.RecordBatch]:
        files = [file for run in section for file in run.files]
        ranks = ranks_of(files)
        system = ((SEQUENCE_NUMBER,) if ranks is None else ()) + ((VALUE_KIND,) if self._has_deletes(files) else ())
        columns = self._columns_to_merge(*system, *self.key_value.key_names)
        batch_rows = merge_bytes_max // (len(section) * self._row_bytes(columns, files))
        batch_rows = min(BATCH_ROWS_MAX, max(1, batch_rows))
        runs = [self._keyed(run, columns, ranks or {}, batch_rows) for run in section]
        if self.merge_function.keeps_newest:
            merged = sort_merge(runs, ordered=ordered, by_sequence=ranks is None)
        else:
            merged = sort_merge_with(
                runs, self.merge_function, final=self.drop_deletes, lowest_counts=self.lowest_counts
            )
        for batch in merged:
            yield from self._finished(batch)

    def keyed(
        self, section: Section, merge_bytes_max: int, *, looked_up: Collection[str]
    ) -> list[Iterator[KeyedBatch]]:
        """Read each run of a section with all columns and file attributes."""
        files = [file for run in section for file in run.files]
        columns = self.output
        batch_rows = merge_bytes_max // (len(section) * self._row_bytes(columns, files))
        batch_rows = min(BATCH_ROWS_MAX, max(1, batch_rows))
        ranks = ranks_of(files) or {}
        return [self._keyed(run, columns, ranks, batch_rows, looked_up) for run in section]

    def _keyed(
        self,
        run: SortedRun,
        columns: Sequence[str],
        ranks: dict[str, int],
        batch_rows: int,
        looked_up: Collection[str] = (),
    ) -> Iterator[KeyedBatch]:
        # A condition on values can't filter rows before the merge: an older version of a key may match when its newest
        # one doesn't. A condition on keys applies to all versions alike.
        on_keys = None if self.predicate is None else self.predicate.restrict_to(frozenset(self.key_value.key_names))
        for file in run.files:
            key_range = None if self._is_in_range(file) else self.key_range
            for batch in self.reader.read(file, columns, predicate=on_keys, key_range=key_range, batch_rows=batch_rows):
                rows = batch if on_keys is None else batch.filter(on_keys.mask(batch))
                keys = self._keys_of(rows)
                if key_range is not None:
                    start, stop = self._rows_in_range(keys)
                    rows, keys = rows.slice(start, max(0, stop - start)), keys.slice(start, max(start, stop))
                if rows.num_rows == 0:
                    continue
                rank = ranks.get(file.file_name, int(file.level == 0))
                yield KeyedBatch(
                    rows=rows,
                    keys=keys,
                    rank=rank,
                    matching=self._matching(rows),
                    level=file.level,
                    looked_up=file.file_name in looked_up,
                )

    def _keys_of(self, rows: pa.RecordBatch) -> MergeKeys:
        return merge_keys(self.key_value.key_columns(rows), self.key_value.key_types)

    def _is_in_range(self, file: DataFileMeta) -> bool:
        """Return whether every key of the file is in the range."""
        if self.key_range is None:
            return True
        comparable = self.key_value.comparable_key
        return self.key_range.contains(comparable(file.min_key), comparable(file.max_key))

    def _rows_in_range(self, keys: MergeKeys) -> tuple[int, int]:
        """Return start and stop of the rows in the key range; ``keys`` are sorted."""
        low, high = self.row_bounds or (None, None)
        return 0 if low is None else keys.rows_before(low), len(keys) if high is None else keys.rows_before(high)

    def _matching(self, rows: pa.RecordBatch) -> npt.NDArray[np.bool_] | None:
        """Return which rows match a condition on values; conditions on keys have been applied already."""
        if self.predicate is None or self.predicate.columns <= frozenset(self.key_value.key_names):
            return None
        return np.asarray(self.predicate.mask(rows).to_numpy(zero_copy_only=False))

    def _finished(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if self.drop_deletes and VALUE_KIND in batch.schema.names:
            batch = without_retracts(batch, batch.column(VALUE_KIND))
        if self.predicate is not None and batch.num_rows:
            mask = self.predicate.mask(batch)
            batch = batch if mask.true_count == batch.num_rows else batch.filter(mask)
        if batch.num_rows:
            yield batch.select(list(self.output))

    def _columns_with(self, *more: str) -> tuple[str, ...]:
        filtered = sorted(self.predicate.columns) if self.predicate is not None else ()
        return tuple(dict.fromkeys((*more, *self.output, *filtered)))

    def _columns_to_merge(self, *more: str) -> tuple[str, ...]:
        columns = self._columns_with(*more)
        if self.merge_function.keeps_newest:
            return columns
        needed = self.merge_function.columns_for(frozenset(columns) & frozenset(self.key_value.value_names))
        return tuple(dict.fromkeys((*columns, *sorted(needed))))

    def _has_deletes(self, files: Sequence[DataFileMeta]) -> bool:
        return self.drop_deletes and any(file.delete_row_count != 0 for file in files)

    def _row_bytes(self, columns: Sequence[str], files: Sequence[DataFileMeta]) -> int:
        """Estimate the size of a row: fixed widths, and for other columns the row's size on storage, uncompressed."""
        packed = sum(file.file_size for file in files) // max(1, sum(file.row_count for file in files))
        types = [self.key_value.field(name).type for name in columns]
        fixed = sum(max(1, type_.bit_width // 8) for type_ in types if _has_width(type_))
        return fixed + (24 + 2 * packed if any(not _has_width(type_) for type_ in types) else 0)


def _row_bounds(key_range: KeyRange, key_value: KeyValueSchema) -> tuple[ComparableKey | None, ComparableKey | None]:
    return _row_bound(key_range.low, key_value), _row_bound(key_range.high, key_value)


def _row_bound(bound: ComparableKey | None, key_value: KeyValueSchema) -> ComparableKey | None:
    if bound is None:
        return None
    converted = column_key(bound, key_value.key_types)
    if converted is None:
        columns = ", ".join(key_value.key_names)
        message = f"key range bound {bound} is not a value of the key columns ({columns}): plan the read again"
        raise InvalidInputError(message)
    return converted


def _has_width(type_: pa.DataType) -> bool:
    return not (pa.types.is_string(type_) or pa.types.is_binary(type_) or pa.types.is_nested(type_))


def ranks_of(files: Sequence[DataFileMeta]) -> dict[str, int] | None:
    """Return ranks by file name, newer files higher; None if sequence intervals overlap.

    Files of one level from 1 on never share a key, so each level counts as one interval, and each file of level 0.
    """
    groups: dict[object, list[DataFileMeta]] = {}
    for file in files:
        groups.setdefault(file.file_name if file.level == 0 else file.level, []).append(file)
    intervals = sorted(
        (min(file.min_sequence_number for file in group), max(file.max_sequence_number for file in group), index)
        for index, group in enumerate(groups.values())
    )
    if any(later[0] <= earlier[1] for earlier, later in pairwise(intervals)):
        return None
    members = list(groups.values())
    return {file.file_name: rank for rank, (_, _, index) in enumerate(intervals) for file in members[index]}
