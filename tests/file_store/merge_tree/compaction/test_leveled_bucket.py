"""A bucket under leveled compaction: its shape, the files that a read opens, and its content against a dictionary."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from storage_lib.file_store.merge_tree.compaction.leveled_compaction import LeveledCompaction
from storage_lib.file_store.merge_tree.interval_partition import interval_partition
from storage_lib.format.parquet_format import ParquetFormat
from storage_lib.schema.types.row_kind import RowKind
from tests.support.bucket_on_disk import LEVEL_COUNT, BucketOnDisk, schema_of
from tests.support.fake_environment import fake_environment

TRIGGER = 3
STRATEGY = LeveledCompaction(level0_trigger=TRIGGER, level_base_bytes=4000, level_multiplier=2)
ROUNDS_MAX = 50

Commit = Sequence[tuple[int, int | None]]
"""Key and value; None deletes the key."""


@pytest.mark.parametrize("seed", range(4))
def test_it_holds_what_a_dictionary_holds_and_keeps_its_shape(seed: int) -> None:
    random = np.random.default_rng(seed)
    commits = [
        [
            (int(key), int(value) if value else None)
            for key, value in random.integers(0, (80, 4), (random.integers(1, 26), 2))
        ]
        for _ in range(30)
    ]
    bucket = _bucket()
    model: dict[int, int] = {}

    for changes in commits:
        _commit(bucket, model, changes)
        _compact_until_nothing_is_due(bucket)

        assert sorted(bucket.rows()) == sorted(model.items())
        _assert_levels_are_sorted_runs(bucket)
        _assert_newer_lies_above_older(bucket)
        # A read of any key opens the fresh files below the trigger and one file of each other level.
        sections = interval_partition(bucket.files, bucket.key_value.comparable_key)
        assert max((len(section) for section in sections), default=0) <= TRIGGER - 1 + LEVEL_COUNT - 1


def test_a_growing_bucket_uses_one_level_after_another_from_the_last_up() -> None:
    bucket = _bucket(row_group_rows=200)
    used: list[set[int]] = []

    for start in range(0, 6000, 400):
        _commit(bucket, {}, [(key * 7919 % 6007, key) for key in range(start, start + 400)])
        _compact_until_nothing_is_due(bucket)
        levels = {file.level for file in bucket.files} - {0}
        if levels and (not used or used[-1] != levels):
            used.append(levels)

    assert used[0] == {5}
    assert all(min(later) <= min(earlier) for earlier, later in pairwise(used))
    assert {3, 4, 5} <= used[-1]


def test_deletions_that_reach_the_last_level_take_their_files_away() -> None:
    bucket = _bucket()
    model: dict[int, int] = {}
    for start in (0, 20, 40):
        _commit(bucket, model, [(key, key) for key in range(start, start + 20)])
        _compact_until_nothing_is_due(bucket)
    for start in (0, 20, 40):
        _commit(bucket, model, [(key, None) for key in range(start, start + 20)])
        bucket.compact(LeveledCompaction(level0_trigger=TRIGGER, level_base_bytes=10**9))

    assert model == {}
    assert bucket.rows() == []
    assert bucket.files == ()


def _bucket(row_group_rows: int = 10) -> BucketOnDisk:
    return BucketOnDisk(
        schema_of("id BIGINT; v INT", ["id"]),
        fake_environment(),
        target_file_size=1000,
        file_format=ParquetFormat(row_group_rows_max=row_group_rows),
    )


def _commit(bucket: BucketOnDisk, model: dict[int, int], changes: Commit) -> None:
    bucket.commit(changes, [RowKind.DELETE if value is None else RowKind.INSERT for _, value in changes])
    for key, value in changes:
        if value is None:
            model.pop(key, None)
        else:
            model[key] = value


def _compact_until_nothing_is_due(bucket: BucketOnDisk) -> None:
    for _ in range(ROUNDS_MAX):
        if not bucket.compact(STRATEGY):
            return
    message = f"compaction is still due after {ROUNDS_MAX} rounds: {bucket.levels.runs}"
    raise AssertionError(message)


def _assert_levels_are_sorted_runs(bucket: BucketOnDisk) -> None:
    comparable = bucket.key_value.comparable_key
    for level_run in bucket.levels.runs:
        for left, right in pairwise(level_run.run.files):
            assert comparable(left.max_key) < comparable(right.min_key), level_run.level


def _assert_newer_lies_above_older(bucket: BucketOnDisk) -> None:
    newest_first: dict[int, list[int]] = {}
    for level_run in bucket.levels.runs:
        for file in level_run.run.files:
            for batch in bucket.reader.read(file, ["_SEQUENCE_NUMBER", "id"], batch_rows=1000):
                for row in batch.to_pylist():
                    newest_first.setdefault(row["id"], []).append(row["_SEQUENCE_NUMBER"])
    assert all(numbers == sorted(numbers, reverse=True) for numbers in newest_first.values())
