"""Aggregate functions that collect: ``collect`` (arrays) and ``merge_map`` (maps).

Entries of arrays and maps are laid out as one row per entry, all entries of a key together, oldest first:

    entry     a   b   a   c   a     equal entries of one key have the same id
    taken                     x     the last event of an entry, or the number of them, decides whether it stays
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.file_store.merge_tree.aggregate_function.field_aggregator import MergedField
from storage_lib.file_store.merge_tree.aggregate_function.field_versions import FieldVersions

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Collect:
    """The elements of all arrays, oldest first; null arrays are ignored, null elements are kept.

    ``distinct``: each element once; else as often as its additions exceed its retractions. After retractions,
    the order of the remaining elements may depend on compactions. ``compares``: elements can be compared, as both need.
    """

    distinct: bool
    compares: bool = True
    name: str = "collect"

    @property
    def takes_back(self) -> bool:
        """Whether elements can be retracted: only if they can be compared."""
        return self.compares

    def lifted(self, values: pa.Array) -> pa.Array:
        """Remove repeated elements of each array if ``distinct``."""
        if not self.distinct:
            return values
        starts = np.arange(len(values))
        rows = FieldVersions(values=values, starts=starts, numbers=starts, count=len(values), retracts=None)
        return self.merge(rows, final=False).state

    def merge(self, versions: FieldVersions, *, final: bool) -> MergedField:  # noqa: ARG002  of the protocol
        """Collect elements; retracted elements that are not among these versions go to ``below``."""
        present = versions.only(versions.is_valid)
        if not len(present.starts):
            return MergedField(state=pa.nulls(versions.count, versions.values.type))
        entries = _Entries.of(present)
        if not self.distinct and present.retracts is None:
            return MergedField(state=entries.lists(np.ones(len(entries.taken), dtype=np.bool_), present))
        ids = entries.ids(pc.list_flatten(present.values))
        stays, goes = ids.remaining_by_last(first=True) if self.distinct else ids.remaining_by_number()
        below = None if present.retracts is None else entries.lists(goes, present, taken=True)
        return MergedField(state=entries.lists(stays, present), below=below, neutral=[])


@dataclass(frozen=True, kw_only=True)
class MergeMap:
    """The entries of all maps, for one key the newest, unless it was retracted later. Null maps are ignored."""

    name: str = "merge_map"
    takes_back: bool = True

    def lifted(self, values: pa.Array) -> pa.Array:
        """Return the values unchanged."""
        return values

    def merge(self, versions: FieldVersions, *, final: bool) -> MergedField:  # noqa: ARG002  of the protocol
        """Merge entries; retracted keys that are not among these go to ``below``."""
        present = versions.only(versions.is_valid)
        if not len(present.starts):
            return MergedField(state=pa.nulls(versions.count, versions.values.type))
        entries = _Entries.of(present)
        stays, goes = entries.ids(_map_keys(present.values)).remaining_by_last(first=False)
        below = None if present.retracts is None else entries.lists(goes, present, taken=True)
        return MergedField(state=entries.lists(stays, present), below=below, neutral=[])


@dataclass(frozen=True, kw_only=True)
class _Ids:
    """Equal entries of a key have one id; ``order`` sorts by id, ``starts`` has the position where each id begins."""

    order: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    taken: Mask

    def remaining_by_last(self, *, first: bool) -> tuple[Mask, Mask]:
        """Return the entries that stay, first or last additions after retractions; and retractions for ``below``."""
        taken = self.taken[self.order]
        place = np.arange(len(taken))
        last_taken = np.maximum.reduceat(np.where(taken, place, -1), self.starts)
        since = place > np.repeat(last_taken, self._counts)
        if first:
            chosen = np.minimum.reduceat(np.where(since, place, len(taken)), self.starts)
        else:
            chosen = np.maximum.reduceat(np.where(since, place, -1), self.starts)
        is_there = (chosen >= 0) & (chosen < len(taken))
        return self._mask(chosen[is_there]), self._mask(last_taken[~is_there])

    def remaining_by_number(self) -> tuple[Mask, Mask]:
        """Return the entries that stay, the oldest in excess of retractions; and retractions for ``below``."""
        taken = self.taken[self.order]
        takes = np.add.reduceat(taken.astype(np.int64), self.starts)
        left = self._counts - 2 * takes
        stays = ~taken & (self._rank(~taken) < np.repeat(left, self._counts))
        goes = taken & (self._rank(taken) < np.repeat(-left, self._counts))
        return self._mask(np.flatnonzero(stays)), self._mask(np.flatnonzero(goes))

    @property
    def _counts(self) -> npt.NDArray[np.int64]:
        return np.diff(np.append(self.starts, len(self.order)))

    def _rank(self, chosen: Mask) -> npt.NDArray[np.int64]:
        """Return for each entry how many chosen entries with its id precede it."""
        before: npt.NDArray[np.int64] = np.cumsum(chosen) - chosen
        return before - np.repeat(before[self.starts], self._counts)

    def _mask(self, places: npt.NDArray[np.int64]) -> Mask:
        mask = np.zeros(len(self.order), dtype=np.bool_)
        mask[self.order[places]] = True
        return mask


@dataclass(frozen=True, kw_only=True)
class _Entries:
    """``group`` is the number of each entry's key among those present; ``taken`` whether the entry is retracted."""

    group: npt.NDArray[np.int64]
    taken: Mask

    @classmethod
    def of(cls, present: FieldVersions) -> _Entries:
        lengths = pc.list_value_length(_as_lists(present.values)).to_numpy().astype(np.int64)
        groups = np.repeat(np.arange(len(present.starts)), present.lasts - present.starts + 1)
        retracts = np.zeros(len(lengths), dtype=np.bool_) if present.retracts is None else present.retracts
        return cls(group=np.repeat(groups, lengths), taken=np.repeat(retracts, lengths))

    def ids(self, values: pa.Array) -> _Ids:
        """Return the ids of the entries, which are identified by ``values``."""
        codes = pc.dictionary_encode(values, null_encoding="encode")
        ids = self.group * (len(codes.dictionary) + 1) + codes.indices.to_numpy().astype(np.int64)
        order = np.argsort(ids, kind="stable")
        in_order = ids[order]
        starts = np.flatnonzero(np.append(True, in_order[1:] != in_order[:-1])) if len(ids) else order
        return _Ids(order=order, starts=starts, taken=self.taken)

    def lists(self, chosen: Mask, present: FieldVersions, *, taken: bool = False) -> pa.Array:
        """Return the chosen entries as an array or a map for each key.

        Null for a key without additions; with ``taken``, null for a key without chosen entries.
        """
        remaining = pa.array(np.flatnonzero(chosen))
        counts = np.bincount(self.group[chosen], minlength=len(present.starts))
        offsets = pa.array(np.append(0, np.cumsum(counts)), pa.int32())
        if taken:
            is_null = counts == 0
        elif present.retracts is None:
            is_null = np.zeros(len(counts), dtype=np.bool_)
        else:
            is_null = np.logical_and.reduceat(present.retracts, present.starts)
        values = present.values
        if pa.types.is_map(values.type):
            keys, items = _map_keys(values).take(remaining), _map_items(values).take(remaining)
            lists = pa.MapArray.from_arrays(offsets, keys, items, type=values.type, mask=pa.array(is_null))
        else:
            elements = pc.list_flatten(values).take(remaining)
            lists = pa.ListArray.from_arrays(offsets, elements, type=values.type, mask=pa.array(is_null))
        return present.spread(lists)


def _as_lists(values: pa.Array) -> pa.Array:
    return values.cast(pa.list_(_entry_type(values.type))) if pa.types.is_map(values.type) else values


def _entry_type(map_type: pa.MapType) -> pa.DataType:
    return pa.struct([map_type.key_field, map_type.item_field])


def _map_keys(values: pa.MapArray) -> pa.Array:
    return pc.struct_field(pc.list_flatten(_as_lists(values)), 0)


def _map_items(values: pa.MapArray) -> pa.Array:
    return pc.struct_field(pc.list_flatten(_as_lists(values)), 1)
