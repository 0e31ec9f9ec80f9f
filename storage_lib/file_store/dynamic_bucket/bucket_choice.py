"""Which bucket a key of a table with dynamic buckets goes to: pure decisions, the same as Paimon's assigners take.

A key that is there already stays in its bucket. New keys fill the buckets that have fewer than the wanted number of
keys, lowest number first; then new buckets begin. Several assigners can work side by side: each has the keys and the
buckets of its own number, modulo the number of assigners.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from storage_lib.errors import InvalidInputError

BUCKETS_MAX = 32_767
"""Paimon keeps the number of a bucket in 16 bits."""

Hashes = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketLimits:
    """How many keys a bucket is meant to hold, how many buckets a partition may have, and how many assigners there are.

    ``buckets_max`` None: as many as the format knows.
    """

    target_keys: int
    buckets_max: int | None = None
    assigner_count: int = 1


def assigners_of(partition_hash: int, key_hashes: Hashes, assigner_count: int) -> npt.NDArray[np.int64]:
    """The number of the assigner of each key of one partition."""
    of_keys = np.abs(np.fmod(key_hashes.astype(np.int64), assigner_count))
    return (abs(partition_hash) % assigner_count + of_keys) % assigner_count


class FillingBuckets:
    """The buckets of one partition, with the number of keys in each; new keys are put into them."""

    def __init__(self, key_counts: Mapping[int, int], limits: BucketLimits) -> None:
        self._counts = dict(key_counts)
        self._limits = limits
        self._last = (BUCKETS_MAX if limits.buckets_max is None else limits.buckets_max) - 1

    def place(self, hashes: Hashes, assigner: int) -> npt.NDArray[np.int32]:
        """The buckets of some new keys of one assigner, in the order in which the keys came.

        Raises ``InvalidInputError`` if there are too many buckets.
        """
        placed = np.empty(len(hashes), dtype=np.int32)
        start = 0
        for bucket in self._candidates(assigner):
            if start == len(hashes):
                break
            count = self._counts.get(bucket, 0)
            taken = min(self._limits.target_keys - count, len(hashes) - start)
            if taken > 0:
                placed[start : start + taken] = bucket
                self._counts[bucket] = count + taken
                start += taken
        if start < len(hashes):
            placed[start:] = self._beyond(hashes[start:], assigner)
        return placed

    def add(self, buckets: npt.NDArray[np.int32]) -> None:
        """Count keys that were put into these buckets before."""
        for bucket, count in zip(*(each.tolist() for each in np.unique(buckets, return_counts=True)), strict=True):
            self._counts[bucket] = self._counts.get(bucket, 0) + count

    def _candidates(self, assigner: int) -> Iterator[int]:
        step = self._limits.assigner_count
        known = sorted(bucket for bucket in self._counts if bucket % step == assigner)
        there = frozenset(known)
        fresh = (bucket for bucket in range(assigner, self._last + 1, step) if bucket not in there)
        return chain(known, fresh)

    def _beyond(self, hashes: Hashes, assigner: int) -> npt.NDArray[np.int32]:
        """Where keys go that no bucket has room for: to any, by their hashes."""
        if self._limits.buckets_max is None:
            message = (
                f"a partition has reached {BUCKETS_MAX} buckets of {self._limits.target_keys} keys, the most that the "
                "format has; raise option dynamic-bucket.target-row-num"
            )
            raise InvalidInputError(message)
        own = sorted(bucket for bucket in self._counts if bucket % self._limits.assigner_count == assigner)
        return np.array(own, dtype=np.int32)[np.abs(np.fmod(hashes.astype(np.int64), len(own)))]


class PartitionIndex:
    """Which keys of one partition, told by their hashes, are in which bucket; grows as new keys come.

    Keys with the same hash share a bucket. Ten bytes a key are held. ``earlier``: what was in the buckets whose content
    is replaced; keys of it that come again go where they were, so that a bucket's changes tell all of a key.
    """

    def __init__(
        self,
        of_buckets: Mapping[int, Hashes],
        limits: BucketLimits,
        *,
        earlier: Mapping[int, Hashes] | None = None,
        unindexed: Collection[int] = (),
    ) -> None:
        self._earlier = _Sorted.of(earlier or {})
        self._there = _Sorted.of(of_buckets)
        self._of_buckets = dict(of_buckets)
        self._limits = limits
        self._filling = FillingBuckets({bucket: len(each) for bucket, each in of_buckets.items()}, limits)
        self._unindexed = unindexed
        self._added: dict[int, list[Hashes]] = {}

    def assign(self, hashes: Hashes, assigners: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """The bucket of each key; ``assigners`` are the keys' assigners."""
        for bucket in self._unindexed:
            # Another assigner's are in another task.
            if (assigners == bucket % self._limits.assigner_count).any():
                self._added.setdefault(bucket, [])
        distinct, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        buckets, is_known = self._there.buckets_of(distinct)
        new = np.flatnonzero(~is_known)
        if len(new):
            before, was_there = self._earlier.buckets_of(distinct[new])
            buckets[new[was_there]] = before[was_there]
            self._filling.add(before[was_there])
            fresh = new[~was_there]
            in_order = fresh[np.argsort(first[fresh], kind="stable")]
            of_fresh = assigners[first[in_order]]
            for assigner in np.unique(of_fresh).tolist():
                own = in_order[of_fresh == assigner]
                buckets[own] = self._filling.place(distinct[own], assigner)
            self._there = self._there.with_more(distinct[new], buckets[new])
            for bucket in np.unique(buckets[new]).tolist():
                self._added.setdefault(bucket, []).append(distinct[new][buckets[new] == bucket])
        return buckets[inverse]

    def grown(self) -> dict[int, Hashes]:
        """All hashes of each bucket that has new ones, or had no index."""
        return {
            bucket: np.concatenate([self._of_buckets.get(bucket, np.empty(0, np.int32)), *added])
            for bucket, added in sorted(self._added.items())
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sorted:
    """Hashes, ascending, and the bucket of each."""

    hashes: Hashes
    buckets: npt.NDArray[np.int32]

    @classmethod
    def of(cls, of_buckets: Mapping[int, Hashes]) -> _Sorted:
        hashes = np.concatenate([np.empty(0, np.int32), *of_buckets.values()])
        sizes = [len(each) for each in of_buckets.values()]
        buckets = np.repeat(np.array(list(of_buckets), dtype=np.int32), sizes)
        distinct, first = np.unique(hashes, return_index=True)
        return cls(hashes=distinct, buckets=buckets[first])

    def buckets_of(self, wanted: Hashes) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        """The bucket of each hash, and whether it has one."""
        if not len(self.hashes):
            return np.zeros(len(wanted), np.int32), np.zeros(len(wanted), np.bool_)
        places = np.minimum(np.searchsorted(self.hashes, wanted), len(self.hashes) - 1)
        return self.buckets[places], self.hashes[places] == wanted

    def with_more(self, hashes: Hashes, buckets: npt.NDArray[np.int32]) -> _Sorted:
        """These and others, ascending."""
        places = np.searchsorted(self.hashes, hashes)
        return _Sorted(hashes=np.insert(self.hashes, places, hashes), buckets=np.insert(self.buckets, places, buckets))
