"""Merge of sorted runs, a few batches of each in memory: the newest version of each key, or a function of all.

1. Every run presents one batch. The smallest of their last keys is the bound: up to it, all versions are in memory.
2. Cut the batches at the bound. The longest cut is the base; it is never sorted.
3. Of the other cuts, keep the newest version of each key (these cuts are usually short).
4. Look their keys up in the base; on each hit, the older side loses its row.
5. Yield base and others, one after the other, or interleaved if the caller asked for order.
6. Runs whose batch is used up present the next one. The last remaining run is passed through.

A merge function instead of "the newest" receives all versions up to the bound (step 2) at once.

If few rows match a condition on values, steps 2 to 5 are reversed: the matching rows whose keys are in no newer cut
are yielded. Nothing is sorted then, and nothing else is copied.

"Newer" compares the files' ranks if their sequence intervals allow it, else `_SEQUENCE_NUMBER`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage_lib.file_store.data_file.comparable_key import ComparableKey
from storage_lib.file_store.data_file.key_value import SEQUENCE_NUMBER
from storage_lib.file_store.merge_tree.counting_rows import counting_rows
from storage_lib.file_store.merge_tree.merge_function.merge_function import MergeFunction
from storage_lib.file_store.merge_tree.merge_keys import Indices, MergeKeys, as_integers
from storage_lib.file_store.merge_tree.merge_versions import merge_versions

FEW_MATCHING_MAX = 1 / 8
"""Up to this share of matching rows, looking their keys up in all newer cuts is faster than a merge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedBatch:
    """Rows sorted by key, one per key; of two batches the one with the higher rank is newer, if ranks decide.

    ``matching`` marks the rows that are wanted if they are the newest of their keys; None: all. ``level`` is that
    of the file. If ``looked_up``, the rows only matter for rows of other batches with the same keys.
    """

    rows: pa.RecordBatch
    keys: MergeKeys
    rank: int
    matching: npt.NDArray[np.bool_] | None = None
    level: int = 0
    looked_up: bool = False

    def slice(self, start: int, stop: int) -> KeyedBatch:
        """Return a view."""
        return replace(
            self,
            rows=self.rows.slice(start, stop - start),
            keys=self.keys.slice(start, stop),
            matching=None if self.matching is None else self.matching[start:stop],
        )


def sort_merge(runs: Sequence[Iterator[KeyedBatch]], *, ordered: bool, by_sequence: bool) -> Iterator[pa.RecordBatch]:
    """Yield the newest version of each key of all runs; sorted by key if ``ordered``, else only piece by piece.

    Rows that are not ``matching`` may be omitted, but still hide older versions.
    Runs yield non-empty batches of the same columns, including ``_SEQUENCE_NUMBER`` if ``by_sequence``.
    """
    for cuts in cut_pieces(runs):
        if len(cuts) == 1:
            yield cuts[0].rows
        else:
            yield from _merge(cuts, ordered=ordered, by_sequence=by_sequence)


def sort_merge_with(
    runs: Sequence[Iterator[KeyedBatch]], merge_function: MergeFunction, *, final: bool, lowest_counts: bool = False
) -> Iterator[pa.RecordBatch]:
    """Merge the versions of each key of all runs with the function; yield rows sorted by key.

    Runs yield non-empty batches of the same columns: those that the function and its order need.
    ``lowest_counts``: of a key's versions above level 0 only that on the lowest level is merged.
    """
    for cuts in cut_pieces(runs):
        if len(cuts) == 1:
            yield cuts[0].rows
            continue
        rows, keys = together(cuts)
        if lowest_counts:
            counting = counting_rows(keys, levels_of_rows(cuts))
            if counting is not None:
                rows, keys = rows.take(pa.array(counting)), keys.take(counting)
        merged = merge_versions(rows, keys, merge_function, final=final)
        if merged.num_rows:
            yield merged


def cut_pieces(runs: Sequence[Iterator[KeyedBatch]]) -> Iterator[Sequence[KeyedBatch]]:
    """Yield pieces in key order, each with all rows of some keys, older ranks first; at least one batch each."""
    cursors = [cursor for cursor in map(_Cursor, runs) if cursor.advance()]
    while len(cursors) > 1:
        bound = min(cursor.last_key for cursor in cursors)
        cuts = [cut for cursor in cursors if (cut := cursor.cut_up_to(bound)) is not None]
        yield sorted(cuts, key=lambda cut: cut.rank)
        cursors = [cursor for cursor in cursors if not cursor.is_used_up or cursor.advance()]
    for cursor in cursors:
        for batch in cursor.rest():
            yield [batch]


def together(cuts: Sequence[KeyedBatch]) -> tuple[pa.RecordBatch, MergeKeys]:
    """Concatenate the rows of some cuts, and their keys."""
    keys = as_integers([cut.keys for cut in cuts])
    return pa.concat_batches([cut.rows for cut in cuts]), keys[0].concat(keys[1:])


def levels_of_rows(cuts: Sequence[KeyedBatch]) -> Indices:
    """Return the level of each row of ``together``."""
    return np.repeat(np.asarray([cut.level for cut in cuts], dtype=np.int64), [cut.rows.num_rows for cut in cuts])


class _Cursor:
    """Current batch of one run, and how much of it is used."""

    def __init__(self, batches: Iterator[KeyedBatch]) -> None:
        self._batches = batches
        self._batch: KeyedBatch | None = None
        self._used = 0

    def advance(self) -> bool:
        self._batch, self._used = next(self._batches, None), 0
        return self._batch is not None

    @property
    def _present(self) -> KeyedBatch:
        assert self._batch is not None  # noqa: S101  sort_merge drops a cursor that can't advance
        return self._batch

    @property
    def last_key(self) -> ComparableKey:
        return self._present.keys.key_at(self._present.rows.num_rows - 1)

    @property
    def is_used_up(self) -> bool:
        return self._used == self._present.rows.num_rows

    def cut_up_to(self, bound: ComparableKey) -> KeyedBatch | None:
        batch, start = self._present, self._used
        self._used = batch.keys.rows_up_to(bound)
        if self._used == start:
            return None
        return batch if (start, self._used) == (0, batch.rows.num_rows) else batch.slice(start, self._used)

    def rest(self) -> Iterator[KeyedBatch]:
        yield self._present.slice(self._used, self._present.rows.num_rows)
        yield from self._batches


def _merge(cuts: Sequence[KeyedBatch], *, ordered: bool, by_sequence: bool) -> Iterator[pa.RecordBatch]:
    """Yield the newest version of each key of some cuts, which are given oldest first."""
    if not ordered and not by_sequence:
        wanted = [np.flatnonzero(cut.matching) for cut in cuts if cut.matching is not None]
        few = FEW_MATCHING_MAX * sum(cut.rows.num_rows for cut in cuts)
        if len(wanted) == len(cuts) and sum(map(len, wanted)) <= few:
            yield from _standing(cuts, wanted)
            return
    cuts = [replace(cut, keys=keys) for cut, keys in zip(cuts, as_integers([cut.keys for cut in cuts]), strict=True)]
    base = max(cuts, key=lambda cut: cut.rows.num_rows)
    others = [cut for cut in cuts if cut is not base]
    other_keys = others[0].keys.concat([cut.keys for cut in others[1:]])
    other_rows = pa.concat_batches([cut.rows for cut in others])
    ages = _Ages(base, others, other_rows) if by_sequence or base is not cuts[0] else None
    remaining = _newest(other_keys, ages.of_others if ages and by_sequence else None, ordered=ordered or by_sequence)
    base_hits, remaining_hits = base.keys.matches(other_keys.take(remaining))
    if ages is not None:
        is_newer = ages.others_are_newer(base_hits, remaining[remaining_hits])
        remaining = np.delete(remaining, remaining_hits[~is_newer])
        base_hits = base_hits[is_newer]
    stands = np.ones(base.rows.num_rows, dtype=np.bool_)
    stands[base_hits] = False
    if not ordered:
        yield base.rows.filter(pa.array(stands)) if len(base_hits) else base.rows
        yield other_rows.take(pa.array(remaining))
        return
    stayed = np.flatnonzero(stands)
    order = base.keys.take(stayed).interleave(other_keys.take(remaining))
    rows = np.concatenate([stayed, remaining + base.rows.num_rows])[order]
    yield pa.concat_batches([base.rows, other_rows]).take(pa.array(rows))


def _standing(cuts: Sequence[KeyedBatch], wanted: Sequence[Indices]) -> Iterator[pa.RecordBatch]:
    """Yield the wanted rows of each cut, oldest first, whose keys are in no newer cut."""
    keys = [cut.keys.take(rows) for cut, rows in zip(cuts, wanted, strict=True)]
    together = keys[0].concat(keys[1:])
    starts = np.cumsum([0, *map(len, wanted)])
    stands = np.ones(len(together), dtype=np.bool_)
    for cut, start in zip(cuts, starts, strict=False):
        if start:
            stands[cut.keys.matches(together.slice(0, int(start)))[1]] = False
    standing = [rows[stands[start : start + len(rows)]] for rows, start in zip(wanted, starts, strict=False)]
    taken = [cut.rows.take(pa.array(rows)) for cut, rows in zip(cuts, standing, strict=True) if len(rows)]
    if taken:
        yield pa.concat_batches(taken)


def _newest(keys: MergeKeys, sequence: npt.NDArray[np.int64] | None, *, ordered: bool) -> Indices:
    """Return the newest row of each key; later rows are newer unless sequence numbers differ."""
    if sequence is None or bool(np.all(sequence[1:] >= sequence[:-1])):
        return keys.newest(ordered=ordered)
    by_age = np.argsort(sequence, kind="stable")
    return by_age[keys.take(by_age).newest(ordered=ordered)]


class _Ages:
    """Age of rows: by sequence number if available, then by rank."""

    def __init__(self, base: KeyedBatch, others: Sequence[KeyedBatch], other_rows: pa.RecordBatch) -> None:
        self._base_rank = base.rank
        self._other_ranks = np.repeat([cut.rank for cut in others], [cut.rows.num_rows for cut in others])
        has_sequence = SEQUENCE_NUMBER in base.rows.schema.names
        self._of_base = base.rows.column(SEQUENCE_NUMBER).to_numpy() if has_sequence else None
        self.of_others = other_rows.column(SEQUENCE_NUMBER).to_numpy() if has_sequence else None

    def others_are_newer(self, base_rows: Indices, other_rows: Indices) -> npt.NDArray[np.bool_]:
        by_rank = self._other_ranks[other_rows] > self._base_rank
        if self._of_base is None or self.of_others is None:
            return by_rank
        base, others = self._of_base[base_rows], self.of_others[other_rows]
        newer: npt.NDArray[np.bool_] = (others > base) | ((others == base) & by_rank)
        return newer
