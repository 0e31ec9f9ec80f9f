"""Which files a compaction rewrites, moves and drops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from storage_lib.errors import NotFoundError
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta, FileSource
from storage_lib.file_store.merge_tree.compaction.compaction_strategy import CompactionUnit
from storage_lib.file_store.merge_tree.compaction.full_compaction import FullCompaction
from storage_lib.file_store.merge_tree.compaction.key_intervals import intervals_of
from storage_lib.schema.types.row_kind import RowKind
from tests.support.bucket_on_disk import BucketOnDisk

INSERT, UPDATE, DELETE = RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE


def _unit(files: Sequence[DataFileMeta], *, level: int = 5, drops: bool = True) -> CompactionUnit:
    return CompactionUnit(files=tuple(files), output_level=level, older_keys=() if drops else intervals_of(files))


def test_overlapping_files_become_one_file_and_survivors_keep_sequence_and_kind(bucket: BucketOnDisk) -> None:
    bucket.commit([(1, "a"), (2, "b")])
    bucket.commit([(2, "B"), (3, "c")], [UPDATE, INSERT])

    increment = bucket.compactor().compact(_unit(bucket.files))

    assert set(increment.compact_before) == set(bucket.files)
    (output,) = increment.compact_after
    assert (output.level, output.file_source) == (5, FileSource.COMPACT)
    assert (output.min_sequence_number, output.max_sequence_number) == (0, 3)
    bucket.files = increment.compact_after
    assert bucket.rows(with_kv=True) == [(0, 0, 1, "a"), (2, 2, 2, "B"), (3, 0, 3, "c")]


def test_deletions_stay_while_something_older_is_below(bucket: BucketOnDisk) -> None:
    bucket.commit([(1, "a"), (2, "b")])
    bucket.commit([(2, None)], [DELETE])

    bucket.files = bucket.compactor().compact(_unit(bucket.files, level=4, drops=False)).compact_after

    assert bucket.files[0].delete_row_count == 1
    assert bucket.rows(drop_deletes=False, with_kv=True) == [(0, 0, 1, "a"), (2, 3, 2, None)]


def test_deletions_go_from_those_keys_alone_that_nothing_older_has(bucket: BucketOnDisk) -> None:
    bucket.commit([(1, "a"), (2, "b")])
    bucket.commit([(2, None)], [DELETE])
    bucket.commit([(8, "a"), (9, "b")])
    bucket.commit([(9, None)], [DELETE])
    bucket.files = tuple(replace(file, file_size=10**9) for file in bucket.files)
    below = [file for file in bucket.files if file.max_sequence_number == 1]

    unit = CompactionUnit(files=bucket.files, output_level=4, older_keys=intervals_of(below))
    bucket.files = bucket.compactor().compact(unit).compact_after

    assert bucket.rows(drop_deletes=False, with_kv=True) == [(0, 0, 1, "a"), (2, 3, 2, None), (3, 0, 8, "a")]


def test_deletions_go_when_nothing_older_is_left(bucket: BucketOnDisk) -> None:
    bucket.commit([(1, "a"), (2, "b")])
    bucket.commit([(2, None)], [DELETE])

    bucket.compact(FullCompaction())

    assert bucket.rows(drop_deletes=False) == [(1, "a")]
    assert bucket.files[0].delete_row_count == 0


def test_a_bucket_of_nothing_but_deletions_becomes_no_file(bucket: BucketOnDisk) -> None:
    bucket.commit([(1, None)], [DELETE])

    increment = bucket.compactor().compact(_unit(bucket.files))

    assert increment.compact_before == bucket.files
    assert increment.compact_after == ()


def test_a_file_alone_in_its_keys_is_moved_unread(bucket: BucketOnDisk) -> None:
    bucket.commit([(1, "a"), (2, "b")])
    bucket.data_files.delete(bucket.files)  # so that a read of it would fail

    increment = bucket.compactor().compact(_unit(bucket.files))

    assert increment.compact_before == bucket.files
    assert increment.compact_after == (replace(bucket.files[0], level=5),)


def test_a_moved_file_keeps_its_deletions_unless_they_have_to_go(bucket: BucketOnDisk) -> None:
    bucket.commit([(1, "a"), (2, None)], [INSERT, DELETE])

    moved = bucket.compactor().compact(_unit(bucket.files, level=4, drops=False))
    rewritten = bucket.compactor().compact(_unit(bucket.files))

    assert moved.compact_after[0].file_name == bucket.files[0].file_name
    assert rewritten.compact_after[0].file_name != bucket.files[0].file_name
    assert rewritten.compact_after[0].row_count == 1


def test_small_neighbours_are_joined_and_large_files_between_them_left_alone(bucket: BucketOnDisk) -> None:
    bucket.commit([(1, "a")])
    bucket.commit([(2, "b")])
    bucket.commit([(50, "large")])
    bucket.commit([(90, "c")])
    bucket.commit([(91, "d")])
    large = next(file for file in bucket.files if file.min_sequence_number == 2)
    bucket.files = (*(file for file in bucket.files if file is not large), replace(large, file_size=10**9))

    increment = bucket.compactor().compact(_unit(bucket.files))

    assert [file.row_count for file in increment.compact_after] == [2, 1, 2]
    assert increment.compact_after[1].file_name == large.file_name
    assert set(increment.compact_before) == set(bucket.files)


def test_a_large_file_already_in_place_is_not_touched(bucket: BucketOnDisk) -> None:
    bucket.commit([(1, "a")])
    bucket.commit([(9, "b")])
    first, second = (replace(file, level=5, file_size=10**9) for file in bucket.files)

    increment = bucket.compactor().compact(_unit([first, replace(second, level=0)]))

    assert increment.compact_before == (replace(second, level=0),)
    assert increment.compact_after == (second,)


def test_a_failed_compaction_leaves_nothing_behind(bucket: BucketOnDisk) -> None:
    bucket.commit([(1, "a"), (2, "b")])
    bucket.commit([(2, "B")])
    bucket.commit([(8, "x")])
    bucket.commit([(8, "y")])
    bucket.target_file_size = 1
    before = {status.name for status in bucket.environment.file_io.list_directory("/table/bucket-0")}
    gone = next(file for file in bucket.files if file.min_sequence_number == 4)
    bucket.environment.file_io.delete(f"/table/bucket-0/{gone.file_name}")

    with pytest.raises(NotFoundError):
        bucket.compactor().compact(_unit(bucket.files))

    after = {status.name for status in bucket.environment.file_io.list_directory("/table/bucket-0")}
    assert after == before - {gone.file_name}


def test_aborting_deletes_what_was_written_and_not_what_was_moved(bucket: BucketOnDisk) -> None:
    bucket.commit([(1, "a")])
    bucket.commit([(1, "b")])
    bucket.commit([(9, "c")])
    files = (*bucket.files[1:], replace(bucket.files[0], file_size=10**9))
    increment = bucket.compactor().compact(_unit(files))

    bucket.compactor().abort(increment)

    names = {status.name for status in bucket.environment.file_io.list_directory("/table/bucket-0")}
    assert names == {file.file_name for file in files}
