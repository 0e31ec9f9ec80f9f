"""Newest versions of keys in several files of a bucket: where they are, kept in memory from commit to commit.

Keys are known by codes: integers that are equal for equal keys (see ``coded_keys.py``).

A search in it costs the same however many small files a bucket has. Files are immutable and are only added, newest
last, so an index stays right as long as all its files are live.

It has a few runs of ascending codes, the oldest first. The codes of a new file are merged with the newest run unless
that has ``_SIZE_RATIO`` times as many; the newer place of a code wins.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from storage_lib.file_store.merge_tree.merge_keys import Indices

Codes = npt.NDArray[np.int64]

_SIZE_RATIO = 8
_RUNS_MAX = 8
_POSITION_BITS = 40
_POSITION_MASK = (1 << _POSITION_BITS) - 1
_OVERHEAD_BYTES = 1_000
ENTRY_BYTES = 16
"""Memory of one code and its place."""


@dataclass(frozen=True, slots=True)
class _Run:
    """Ascending distinct codes, and for each the number of its file and its position in it."""

    codes: Codes
    places: Indices

    def with_newer(self, newer: _Run, match: _Match) -> _Run:
        """Return both as one run, with the newer places of codes that both have; ``match`` has the newer codes."""
        places = self.places.copy()
        places[match.at[match.is_there]] = newer.places[match.is_there]
        more = ~match.is_there
        at = match.at[more]
        at += np.arange(len(at))
        is_older = np.ones(len(places) + len(at), dtype=np.bool_)
        is_older[at] = False
        return _Run(
            _interleaved(is_older, self.codes, at, newer.codes[more]),
            _interleaved(is_older, places, at, newer.places[more]),
        )


@dataclass(frozen=True, slots=True)
class _Match:
    """Where each of some codes belongs in a run, and whether it is there."""

    at: Indices
    is_there: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class NewestPlaces:
    """Codes of the keys of some files; frozen, so that threads may share it. The first run has the oldest files."""

    names: tuple[str, ...] = ()
    runs: tuple[_Run, ...] = ()

    @property
    def nbytes(self) -> int:
        """Approximate size in memory, in bytes."""
        return _OVERHEAD_BYTES + sum(each.codes.nbytes + each.places.nbytes for each in self.runs)

    def with_file(self, name: str, codes: Codes, positions: Indices) -> NewestPlaces:
        """Return an index with one file more, which is newer than the others.

        It has these ascending distinct codes at these positions.
        """
        return self.replacing(name, codes, positions)[0]

    def replacing(self, name: str, codes: Codes, positions: Indices) -> tuple[NewestPlaces, dict[str, Indices], Codes]:
        """Return ``with_file``, and what ``find`` returns of the codes before the file is added."""
        new = _Run(codes, positions | (len(self.names) << _POSITION_BITS))
        runs = list(self.runs)
        found: list[Indices] = []
        rest = codes
        if runs and len(codes) and len(runs[-1].codes) < _SIZE_RATIO * len(codes):
            last = runs.pop()
            match = _match(last.codes, codes)
            found.append(last.places[match.at[match.is_there]])
            rest = codes[~match.is_there]
            new = last.with_newer(new, match)
        older, rest = _found(self.names, runs, rest, found)
        if len(new.codes):
            runs.append(new)
        if len(runs) > _RUNS_MAX:
            newer = runs.pop()
            runs[-1] = runs[-1].with_newer(newer, _match(runs[-1].codes, newer.codes))
        return NewestPlaces((*self.names, name), tuple(runs)), older, rest

    def find(self, codes: Codes) -> tuple[dict[str, Indices], Codes]:
        """Return positions by file name of the newest rows with these ascending codes; and the other codes.

        The positions of a file ascend.
        """
        return _found(self.names, self.runs, codes, [])


def _found(
    names: Sequence[str], runs: Sequence[_Run], codes: Codes, places: list[Indices]
) -> tuple[dict[str, Indices], Codes]:
    """Return what ``find`` returns of some runs, with the ``places`` that were found before; ``places`` gets more."""
    for run in reversed(runs):
        more, codes = _taken(run, codes)
        places.append(more)
    together = np.concatenate([np.zeros(0, dtype=np.int64), *places])
    together.sort()
    numbers = together >> _POSITION_BITS
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    parts = np.split(together & _POSITION_MASK, starts[1:]) if len(starts) else []
    return {names[number]: part for number, part in zip(numbers[starts].tolist(), parts, strict=True)}, codes


def _interleaved(is_older: npt.NDArray[np.bool_], older: Codes, at: Indices, newer: Codes) -> Codes:
    """Return an array of both: the newer values at their places, the older ones at the others."""
    values = np.empty(len(is_older), dtype=np.int64)
    values[is_older] = older
    values[at] = newer
    return values


def _taken(run: _Run, codes: Codes) -> tuple[Indices, Codes]:
    """Return the places of the codes that a run has, and the other codes."""
    if not len(codes) or codes[-1] < run.codes[0] or run.codes[-1] < codes[0]:
        return np.zeros(0, dtype=np.int64), codes
    if len(run.codes) < len(codes):
        reverse = _match(codes, run.codes)
        return run.places[reverse.is_there], np.delete(codes, reverse.at[reverse.is_there])
    match = _match(run.codes, codes)
    return run.places[match.at[match.is_there]], codes[~match.is_there]


def _match(sorted_keys: Codes, codes: Codes) -> _Match:
    """Search codes among others; both ascend, and neither is empty."""
    at = np.searchsorted(sorted_keys, codes)
    return _Match(at, sorted_keys[np.minimum(at, len(sorted_keys) - 1)] == codes)


class PlacesOfBuckets:
    """Indexes by partition and bucket, up to ``bytes_max`` bytes in total. Threads may share it.

    An index may have up to a quarter of the memory, so that a few buckets do not push each other out.
    """

    def __init__(self, bytes_max: int) -> None:
        self.index_bytes_max = bytes_max // 4
        self._bytes_max = bytes_max
        self._bytes = 0
        self._indexes: OrderedDict[tuple[bytes, int], NewestPlaces] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, partition: bytes, bucket: int) -> NewestPlaces:
        """Return the index of a bucket; an empty one if there is none."""
        with self._lock:
            known = self._indexes.get((partition, bucket))
            if known is None:
                return NewestPlaces()
            self._indexes.move_to_end((partition, bucket))
            return known

    def keep(self, partition: bytes, bucket: int, index: NewestPlaces) -> None:
        """Keep the index of a bucket instead of the former one; one that is too large is dropped, to begin again."""
        with self._lock:
            before = self._indexes.pop((partition, bucket), None)
            self._bytes -= 0 if before is None else before.nbytes
            if index.nbytes > self.index_bytes_max:
                return
            self._indexes[partition, bucket] = index
            self._bytes += index.nbytes
            while self._bytes > self._bytes_max:
                _, oldest = self._indexes.popitem(last=False)
                self._bytes -= oldest.nbytes
