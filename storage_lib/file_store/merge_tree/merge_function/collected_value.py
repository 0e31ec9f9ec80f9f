"""Aggregate functions that collect: ``collect`` (arrays) and ``merge_map`` (maps).

What arrays and maps hold is laid out as one row per entry, entries of a key one after the other, oldest first:

    entry     a   b   a   c   a     ids tell equal entries of one key apart from others
    taken                     x     the last event of an entry, or the number of them, decides whether it stays
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.file_store.merge_tree.merge_function.field_aggregator import MergedField
from storage_lib.file_store.merge_tree.merge_function.field_versions import FieldVersions

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Collect:
    """The elements of all arrays, oldest first; nulls for arrays don't count, nulls in them do.

    ``distinct``: each once. Else each as often as it was added more than taken back. Where something was taken back,
    the order of what is left may vary with compactions. ``compares``: whether elements can be compared, as both needs.
    """

    distinct: bool
    compares: bool = True
    name: str = "collect"

    @property
    def takes_back(self) -> bool:
        """Where elements can be found again."""
        return self.compares

    def lifted(self, values: pa.Array) -> pa.Array:
        """An array may have repeats already."""
        if not self.distinct:
            return values
        starts = np.arange(len(values))
        rows = FieldVersions(values=values, starts=starts, numbers=starts, count=len(values), retracts=None)
        return self.merge(rows, final=False).state

    def merge(self, versions: FieldVersions, *, final: bool) -> MergedField:  # noqa: ARG002  of the protocol
        """Retracted elements that are not among these versions go to ``below``."""
        present = versions.only(versions.is_valid)
        if not len(present.starts):
            return MergedField(state=pa.nulls(versions.count, versions.values.type))
        entries = _Entries.of(present)
        if not self.distinct and present.retracts is None:
            return MergedField(state=entries.lists(np.ones(len(entries.taken), dtype=np.bool_), present))
        ids = entries.ids(pc.list_flatten(present.values))
        stays, goes = ids.told_by_last(first=True) if self.distinct else ids.told_by_number()
        below = None if present.retracts is None else entries.lists(goes, present, taken=True)
        return MergedField(state=entries.lists(stays, present), below=below, neutral=[])


@dataclass(frozen=True, kw_only=True)
class MergeMap:
    """The entries of all maps; of one key the newest, unless it was taken back since. Nulls for maps don't count."""

    name: str = "merge_map"
    takes_back: bool = True

    def lifted(self, values: pa.Array) -> pa.Array:
        """As they are."""
        return values

    def merge(self, versions: FieldVersions, *, final: bool) -> MergedField:  # noqa: ARG002  of the protocol
        """Keys that were taken back and are not among these go below."""
        present = versions.only(versions.is_valid)
        if not len(present.starts):
            return MergedField(state=pa.nulls(versions.count, versions.values.type))
        entries = _Entries.of(present)
        stays, goes = entries.ids(_map_keys(present.values)).told_by_last(first=False)
        below = None if present.retracts is None else entries.lists(goes, present, taken=True)
        return MergedField(state=entries.lists(stays, present), below=below, neutral=[])


@dataclass(frozen=True, kw_only=True)
class _Ids:
    """Equal entries of a key have one id; ``order`` sorts by it, ``starts`` says where in that order each begins."""

    order: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    taken: Mask

    def told_by_last(self, *, first: bool) -> tuple[Mask, Mask]:
        """Which entries stay: the first, or the last, addition since the last time it was taken; and which are gone."""
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

    def told_by_number(self) -> tuple[Mask, Mask]:
        """Which stay: the oldest additions, as many as there are more than were taken; and which are gone."""
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
        """For each entry how many chosen ones with its id come before it."""
        before: npt.NDArray[np.int64] = np.cumsum(chosen) - chosen
        return before - np.repeat(before[self.starts], self._counts)

    def _mask(self, places: npt.NDArray[np.int64]) -> Mask:
        mask = np.zeros(len(self.order), dtype=np.bool_)
        mask[self.order[places]] = True
        return mask


@dataclass(frozen=True, kw_only=True)
class _Entries:
    """``group`` is each entry's key, as the number of those present; ``taken`` whether it is taken back."""

    group: npt.NDArray[np.int64]
    taken: Mask

    @classmethod
    def of(cls, present: FieldVersions) -> _Entries:
        lengths = pc.list_value_length(_as_lists(present.values)).to_numpy().astype(np.int64)
        groups = np.repeat(np.arange(len(present.starts)), present.lasts - present.starts + 1)
        retracts = np.zeros(len(lengths), dtype=np.bool_) if present.retracts is None else present.retracts
        return cls(group=np.repeat(groups, lengths), taken=np.repeat(retracts, lengths))

    def ids(self, values: pa.Array) -> _Ids:
        """``values`` identify the entries."""
        codes = pc.dictionary_encode(values, null_encoding="encode")
        ids = self.group * (len(codes.dictionary) + 1) + codes.indices.to_numpy().astype(np.int64)
        order = np.argsort(ids, kind="stable")
        in_order = ids[order]
        starts = np.flatnonzero(np.append(True, in_order[1:] != in_order[:-1])) if len(ids) else order
        return _Ids(order=order, starts=starts, taken=self.taken)

    def lists(self, chosen: Mask, present: FieldVersions, *, taken: bool = False) -> pa.Array:
        """The chosen entries as an array or a map for each of all keys.

        Null where nothing was added; or, of what is ``taken``, where there is none.
        """
        kept = pa.array(np.flatnonzero(chosen))
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
            keys, items = _map_keys(values).take(kept), _map_items(values).take(kept)
            lists = pa.MapArray.from_arrays(offsets, keys, items, type=values.type, mask=pa.array(is_null))
        else:
            elements = pc.list_flatten(values).take(kept)
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
