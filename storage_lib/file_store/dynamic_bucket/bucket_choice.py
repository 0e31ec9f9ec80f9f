"""Bucket assignment for tables with dynamic buckets: pure functions that agree with Paimon's assigners.

An existing key stays in its bucket. New keys fill the buckets that have fewer than the target number of
keys, lowest number first; then new buckets are created. Several assigners can run in parallel: each has the keys and
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
"""Paimon stores the number of a bucket in 16 bits."""

Hashes = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketLimits:
    """Target number of keys per bucket, maximum number of buckets per partition, and number of assigners.

    ``buckets_max`` None: the maximum of the format.
    """

    target_keys: int
    buckets_max: int | None = None
    assigner_count: int = 1


def assigners_of(partition_hash: int, key_hashes: Hashes, assigner_count: int) -> npt.NDArray[np.int64]:
    """Return the number of the assigner of each key of one partition."""
    of_keys = np.abs(np.fmod(key_hashes.astype(np.int64), assigner_count))
    return (abs(partition_hash) % assigner_count + of_keys) % assigner_count


class FillingBuckets:
    """Buckets of one partition, with the number of keys in each; assigns buckets to new keys."""

    def __init__(self, key_counts: Mapping[int, int], limits: BucketLimits) -> None:
        self._counts = dict(key_counts)
        self._limits = limits
        self._last = (BUCKETS_MAX if limits.buckets_max is None else limits.buckets_max) - 1

    def place(self, hashes: Hashes, assigner: int) -> npt.NDArray[np.int32]:
        """Return the buckets of new keys of one assigner, in order of arrival.

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
        """Count keys that were assigned to these buckets before."""
        for bucket, count in zip(*(each.tolist() for each in np.unique(buckets, return_counts=True)), strict=True):
            self._counts[bucket] = self._counts.get(bucket, 0) + count

    def _candidates(self, assigner: int) -> Iterator[int]:
        step = self._limits.assigner_count
        known = sorted(bucket for bucket in self._counts if bucket % step == assigner)
        there = frozenset(known)
        fresh = (bucket for bucket in range(assigner, self._last + 1, step) if bucket not in there)
        return chain(known, fresh)

    def _beyond(self, hashes: Hashes, assigner: int) -> npt.NDArray[np.int32]:
        """Assign keys by hash to any bucket; raises ``InvalidInputError`` without an option to limit buckets."""
        if self._limits.buckets_max is None:
            message = (
                f"a partition has reached {BUCKETS_MAX} buckets of {self._limits.target_keys} keys, the most that the "
                "format has; raise option dynamic-bucket.target-row-num"
            )
            raise InvalidInputError(message)
        own = sorted(bucket for bucket in self._counts if bucket % self._limits.assigner_count == assigner)
        return np.array(own, dtype=np.int32)[np.abs(np.fmod(hashes.astype(np.int64), len(own)))]


class PartitionIndex:
    """Index of the keys of one partition by bucket, using their hashes; grows with new keys.

    Keys with the same hash share a bucket. Uses ten bytes per key. ``earlier`` has the keys of replaced content:
    if they come again, they get their old bucket, so that the changes of a bucket include all of a key.
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
        """Return the bucket of each key; ``assigners`` are the keys' assigners."""
        for bucket in self._unindexed:
            # Buckets of other assigners belong to other tasks.
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
        """Return all hashes of each bucket that has new ones, or had no index."""
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
        """Return the bucket of each hash, and whether it has one."""
        if not len(self.hashes):
            return np.zeros(len(wanted), np.int32), np.zeros(len(wanted), np.bool_)
        places = np.minimum(np.searchsorted(self.hashes, wanted), len(self.hashes) - 1)
        return self.buckets[places], self.hashes[places] == wanted

    def with_more(self, hashes: Hashes, buckets: npt.NDArray[np.int32]) -> _Sorted:
        """Return these hashes and others, ascending."""
        places = np.searchsorted(self.hashes, hashes)
        return _Sorted(hashes=np.insert(self.hashes, places, hashes), buckets=np.insert(self.buckets, places, buckets))
