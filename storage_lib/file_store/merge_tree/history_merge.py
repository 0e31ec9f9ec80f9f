"""Merge versions with the existing rows of their keys, and compute the changes.

    level 0   (k, +5)              part of a compaction to level 4 of a table that sums:
    level 4   (k, 10)              k becomes 15, and its row on level 5, which 10 includes, does not count;
    level 5   (k, 7) (j, 1)        looked up: j has no newer version, and stays on level 5.
                                   changes: -U (k, 10), +U (k, 15)

Source of the pre-image, by ``changelog-producer``:

    lookup            the counting row above level 0; only keys with a row on level 0 change
    full-compaction   the row on the last level; only keys with a row on any other level change
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from storage_lib.file_store.data_file.key_value import VALUE_KIND, KeyValueSchema
from storage_lib.file_store.merge_tree.counting_rows import counting_rows
from storage_lib.file_store.merge_tree.merge_function.merge_function import MergeFunction, retracts
from storage_lib.file_store.merge_tree.merge_function.versions import Versions
from storage_lib.file_store.merge_tree.merge_keys import Indices, MergeKeys, merge_keys
from storage_lib.file_store.merge_tree.merge_versions import gathered_versions
from storage_lib.file_store.merge_tree.sort_merge import KeyedBatch, levels_of_rows, together
from storage_lib.schema.types.row_kind import RowKind

_NONE = -1
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """KV batches sorted by key: the rows for the output level, and the changes (None: not requested)."""

    rows: pa.RecordBatch
    changes: pa.RecordBatch | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryMerge:
    """``merge`` receives all versions of some keys in a compaction's input, and those looked up below its output.

    ``top_level``: changes are relative to the rows on that level; None: to those above level 0.
    ``keeps_first``: a row below the output level remains the row of its key (first-row). ``writes_changelog`` requests
    changes, ``skips_equal`` omits those that change no value.
    """

    key_value: KeyValueSchema
    merge_function: MergeFunction
    looks_up: bool
    writes_changelog: bool
    top_level: int | None = None
    keeps_first: bool = False
    skips_equal: bool = False

    def merge(self, cuts: Sequence[KeyedBatch], *, drops_deletes: bool) -> Merged | None:
        """Return rows and changes of the keys in these pieces; None if all of them were only looked up."""
        rows, keys = together(cuts)
        levels = levels_of_rows(cuts)
        looked_up = np.repeat([cut.looked_up for cut in cuts], [len(cut.keys) for cut in cuts])
        if self.looks_up:
            counting = counting_rows(keys, levels)
            if counting is not None:
                rows, keys = rows.take(pa.array(counting)), keys.take(counting)
                levels, looked_up = levels[counting], looked_up[counting]
        if looked_up.any():
            wanted = _with_keys_of_others(keys, looked_up)
            if not len(wanted):
                return None
            rows, keys, levels, looked_up = (
                rows.take(pa.array(wanted)),
                keys.take(wanted),
                levels[wanted],
                looked_up[wanted],
            )
        versions, order = gathered_versions(rows, keys, self.merge_function)
        levels, looked_up = levels[order], looked_up[order]
        merged = self._merged(versions)
        stays = np.zeros(len(versions.starts), dtype=np.bool_)
        if self.keeps_first:
            stays = np.logical_or.reduceat(looked_up, versions.starts)
        return Merged(
            rows=merged.written(stays, drops_deletes=drops_deletes),
            changes=self._changes(versions, levels, merged, stays) if self.writes_changelog else None,
        )

    def _merged(self, versions: Versions) -> _MergedKeys:
        # All counting versions of the keys are here, so the merge is final.
        final = self.merge_function.merge(versions, final=True)
        count = len(versions.starts)
        result = np.arange(count)
        vanished = None
        if final.num_rows < count:
            first = self.key_value.key_columns(versions.rows.take(pa.array(versions.starts)))
            of_groups = merge_keys(first, self.key_value.key_types)
            of_results = merge_keys(self.key_value.key_columns(final), self.key_value.key_types)
            groups, results = of_groups.matches(of_results)
            result = np.full(count, _NONE)
            result[groups] = results
            # For keys without a row: the delete rows that still have to hide older versions.
            vanished = self.merge_function.merge(versions, final=False)
        return _MergedKeys(standing=final, result=result, vanished=vanished)

    def _changes(self, versions: Versions, levels: Indices, merged: _MergedKeys, stays: Flags) -> pa.RecordBatch:
        is_before = levels > 0 if self.top_level is None else levels == self.top_level
        positions = np.where(is_before, np.arange(len(levels)), _NONE)
        before = np.maximum.reduceat(positions, versions.starts)
        changed = np.logical_or.reduceat(~is_before, versions.starts) & ~stays
        if self.top_level is None:
            changed &= np.logical_or.reduceat(levels == 0, versions.starts)
        has_before = before != _NONE
        has_before[has_before] = ~retracts(versions.rows.column(VALUE_KIND))[before[has_before]]
        has_after = merged.result != _NONE
        if self.keeps_first:
            # The first row of a key never changes.
            changed &= ~has_before
        if self.skips_equal:
            both = np.flatnonzero(has_before & has_after & changed)
            changed[both] = ~self._are_equal(versions.rows, before[both], merged.standing, merged.result[both])
        retracted = np.flatnonzero(changed & has_before)
        added = np.flatnonzero(changed & has_after)
        old = versions.rows.take(pa.array(before[retracted]))
        new = merged.standing.take(pa.array(merged.result[added]))
        old_kinds = np.where(has_after[retracted], np.int8(RowKind.UPDATE_BEFORE), np.int8(RowKind.DELETE))
        new_kinds = np.where(has_before[added], np.int8(RowKind.UPDATE_AFTER), np.int8(RowKind.INSERT))
        both_rows = pa.concat_batches([_of_kinds(old, old_kinds), _of_kinds(new, new_kinds)])
        return both_rows.take(pa.array(np.argsort(np.concatenate([retracted * 2, added * 2 + 1]), kind="stable")))

    def _are_equal(self, rows: pa.RecordBatch, before: Indices, results: pa.RecordBatch, after: Indices) -> Flags:
        names = self.key_value.value_names
        frames = [
            pl.DataFrame({str(place): pl.from_arrow(each.column(name)) for place, name in enumerate(names)})
            for each in (rows.take(pa.array(before)), results.take(pa.array(after)))
        ]
        equal = np.ones(len(before), dtype=np.bool_)
        for old, new in zip(frames[0], frames[1], strict=True):
            equal &= old.eq_missing(new).to_numpy()
        return equal


@dataclass(frozen=True, slots=True, kw_only=True)
class _MergedKeys:
    """``result`` has each key's position in ``standing``, -1 without a row; ``vanished`` then has one row per key."""

    standing: pa.RecordBatch
    result: Indices
    vanished: pa.RecordBatch | None

    def written(self, stays: Flags, *, drops_deletes: bool) -> pa.RecordBatch:
        """Return the rows for the output level, without keys whose row stays below it."""
        if self.vanished is None or drops_deletes:
            found = self.result[(self.result != _NONE) & ~stays]
            return self.standing if len(found) == self.standing.num_rows else self.standing.take(pa.array(found))
        groups = np.arange(len(self.result))
        place = np.where(self.result == _NONE, groups + self.standing.num_rows, self.result)[~stays]
        return pa.concat_batches([self.standing, self.vanished]).take(pa.array(place))


def _with_keys_of_others(keys: MergeKeys, looked_up: Flags) -> Indices:
    """Return the rows that were not only looked up, and all rows with the same keys."""
    others = np.flatnonzero(~looked_up)
    if not len(others):
        return others
    own = keys.take(others)
    own = own.take(own.newest(ordered=True))
    known = np.flatnonzero(looked_up)
    _, hits = own.matches(keys.take(known))
    return np.sort(np.concatenate([others, known[hits]]))


def _of_kinds(rows: pa.RecordBatch, kinds: npt.NDArray[np.int8]) -> pa.RecordBatch:
    index = rows.schema.get_field_index(VALUE_KIND)
    return rows.set_column(index, rows.schema.field(index), pa.array(kinds, pa.int8()))
