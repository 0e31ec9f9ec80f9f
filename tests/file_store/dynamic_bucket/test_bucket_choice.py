"""Which dynamic bucket a key is assigned to: Paimon's rules, and the limits of concurrent assigners."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage_lib.errors import CorruptFileError, InvalidInputError
from storage_lib.file_store.dynamic_bucket.bucket_choice import BucketLimits, PartitionIndex, assigners_of
from storage_lib.file_store.manifest.hash_index import decode_hashes, encode_hashes

HASHES = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=60)


def array(*hashes: int) -> np.ndarray:
    return np.array(hashes, dtype=np.int32)


def assigned(index: PartitionIndex, *hashes: int, assigner_count: int = 1) -> list[int]:
    return index.assign(array(*hashes), assigners_of(0, array(*hashes), assigner_count)).tolist()


def test_new_keys_fill_a_bucket_before_the_next_begins() -> None:
    index = PartitionIndex({}, BucketLimits(target_keys=2))
    assert assigned(index, 5, 5, -7, 9, 5, 1) == [0, 0, 0, 1, 0, 1]
    assert assigned(index, 3, 9, -7) == [2, 1, 0]
    assert {bucket: each.tolist() for bucket, each in index.grown().items()} == {0: [-7, 5], 1: [1, 9], 2: [3]}


def test_a_known_key_stays_and_new_ones_fill_what_has_room() -> None:
    index = PartitionIndex({0: array(1, 2, 3), 4: array(8)}, BucketLimits(target_keys=3))
    assert assigned(index, 8, 1, 10, 11, 12) == [4, 0, 4, 4, 1]
    assert sorted(index.grown()) == [1, 4]
    assert index.grown()[4].tolist() == [8, 10, 11]


def test_beyond_the_last_bucket_keys_go_to_full_ones() -> None:
    index = PartitionIndex({}, BucketLimits(target_keys=1, buckets_max=2))
    assert set(assigned(index, *range(10))) == {0, 1}
    assert assigned(index, *range(10)) == assigned(index, *range(10))


def test_more_buckets_than_the_format_has_are_refused() -> None:
    index = PartitionIndex({}, BucketLimits(target_keys=1))
    with pytest.raises(InvalidInputError, match=r"32767 buckets of 1 keys.*dynamic-bucket\.target-row-num"):
        assigned(index, *range(32_768))


def test_keys_of_replaced_rows_go_where_they_were() -> None:
    index = PartitionIndex({}, BucketLimits(target_keys=2), earlier={3: array(1, 2, 3)})
    assert assigned(index, 9, 2, 8, 7) == [3, 3, 0, 0]
    assert sorted(index.grown()[3].tolist()) == [2, 9]


@given(known=HASHES, batches=st.lists(HASHES, max_size=4), count=st.integers(1, 4), target=st.integers(1, 5))
def test_each_key_has_one_bucket_whoever_assigns_it(
    known: list[int], batches: list[list[int]], count: int, target: int
) -> None:
    """Concurrent assigners, each with the keys of its own number, never share a new bucket and never split a key."""
    limits = BucketLimits(target_keys=target, assigner_count=count)
    first = PartitionIndex({}, limits)
    first.assign(array(*known), assigners_of(0, array(*known), count))
    before = first.grown()
    place = {key: bucket for bucket, each in before.items() for key in each.tolist()}
    tasks = [PartitionIndex(before, limits) for _ in range(count)]
    for batch in batches:
        hashes = array(*batch)
        assigners = assigners_of(0, hashes, count)
        for number, task in enumerate(tasks):
            mine = hashes[assigners == number]
            buckets = task.assign(mine, assigners[assigners == number])
            for key, bucket in zip(mine.tolist(), buckets.tolist(), strict=True):
                assert place.setdefault(key, bucket) == bucket
    grown = [set(task.grown()) for task in tasks]
    assert sum(map(len, grown)) == len(set().union(*grown))
    after = before | {bucket: each for task in tasks for bucket, each in task.grown().items()}
    assert {key: bucket for bucket, each in after.items() for key in each.tolist()} == place
    assert all(len(each) <= target for each in after.values())


@given(HASHES)
def test_an_index_file_is_read_as_it_was_written(hashes: list[int]) -> None:
    assert decode_hashes(encode_hashes(array(*hashes)), "x").tolist() == hashes


def test_an_index_file_that_was_cut_short_is_named() -> None:
    assert encode_hashes(array(1)) == b"\x00\x00\x00\x01"
    with pytest.raises(CorruptFileError, match="index-1 has 7 bytes"):
        decode_hashes(b"1234567", "index-1")
