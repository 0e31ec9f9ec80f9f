"""Appending to and overwriting a bucket: the resulting files, and the state after an abort."""

from __future__ import annotations

import pytest

from storage_lib.file_store.data_file.data_file_meta import FileSource
from storage_lib.schema.types.row_kind import RowKind
from tests.support.bucket_on_disk import BucketOnDisk, row_kinds

INSERT, DELETE = RowKind.INSERT, RowKind.DELETE


def _file_names(bucket: BucketOnDisk) -> set[str]:
    return {status.name for status in bucket.environment.file_io.list_directory("/table/bucket-0")}


def test_sequence_numbers_go_on_above_the_highest_of_the_bucket(bucket: BucketOnDisk) -> None:
    bucket.commit([(1, "a"), (2, "b")])

    bucket.commit([(1, "A"), (1, "AA")])

    assert [(file.min_sequence_number, file.max_sequence_number) for file in bucket.files] == [(3, 3), (0, 1)]


def test_a_full_memtable_is_flushed_and_the_commit_hands_over_every_file_once(bucket: BucketOnDisk) -> None:
    bucket.memtable_bytes_max = 1
    writer = bucket.writer()
    writer.write(bucket.batch([(1, "a")]), row_kinds([INSERT]))
    writer.write(bucket.batch([(1, "b")]), row_kinds([INSERT]))

    assert writer.memtable_bytes == 0
    assert [file.level for file in writer.prepare_commit().new_files] == [0, 0]
    assert writer.prepare_commit().is_empty
    assert writer.next_sequence == 2


def test_unsynced_paths_are_told_once(bucket: BucketOnDisk) -> None:
    writer = bucket.writer()
    writer.write(bucket.batch([(1, "a")]), row_kinds([INSERT]))
    (file,) = writer.prepare_commit().new_files

    assert writer.take_unsynced() == [f"/table/bucket-0/{file.file_name}"]
    assert writer.take_unsynced() == []


def test_an_abort_deletes_what_was_not_handed_over_and_nothing_else(bucket: BucketOnDisk) -> None:
    bucket.memtable_bytes_max = 1
    writer = bucket.writer()
    writer.write(bucket.batch([(1, "a")]), row_kinds([INSERT]))
    committed = writer.prepare_commit().new_files
    writer.write(bucket.batch([(2, "b")]), row_kinds([INSERT]))

    writer.abort()

    assert _file_names(bucket) == {file.file_name for file in committed}
    assert writer.take_unsynced() == [f"/table/bucket-0/{committed[0].file_name}"]
    assert writer.prepare_commit().is_empty


@pytest.mark.parametrize("memtable_bytes_max", [10**9, 1], ids=["in memory", "spilled"])
def test_overwriting_makes_one_run_at_the_top_level_with_sequence_zero(
    bucket: BucketOnDisk, memtable_bytes_max: int
) -> None:
    bucket.memtable_bytes_max = memtable_bytes_max
    bucket.target_file_size = 1
    bucket.__post_init__()
    writer = bucket.overwriter()
    writer.write(bucket.batch([(3, "c"), (1, "a")]), row_kinds([INSERT] * 2))
    writer.write(bucket.batch([(2, "b"), (1, "A"), (4, "d")]), row_kinds([INSERT] * 3))
    writer.write(bucket.batch([(3, None)]), row_kinds([DELETE]))

    files = writer.prepare_commit().new_files

    assert {(file.level, file.min_sequence_number, file.max_sequence_number) for file in files} == {(5, 0, 0)}
    assert {(file.delete_row_count, file.file_source) for file in files} == {(0, FileSource.APPEND)}
    assert _file_names(bucket) == {file.file_name for file in files}
    assert sorted(writer.take_unsynced()) == sorted(f"/table/bucket-0/{file.file_name}" for file in files)
    bucket.files = files
    assert bucket.rows() == [(1, "A"), (2, "b"), (4, "d")]


def test_whatever_is_committed_after_an_overwrite_wins(bucket: BucketOnDisk) -> None:
    writer = bucket.overwriter()
    writer.write(bucket.batch([(1, "a"), (2, "b")]), row_kinds([INSERT] * 2))
    bucket.files = writer.prepare_commit().new_files

    bucket.commit([(2, "B")])

    assert bucket.files[0].min_sequence_number == 1
    assert sorted(bucket.rows()) == [(1, "a"), (2, "B")]


def test_an_aborted_overwrite_leaves_no_file(bucket: BucketOnDisk) -> None:
    bucket.memtable_bytes_max = 1
    writer = bucket.overwriter()
    writer.write(bucket.batch([(1, "a")]), row_kinds([INSERT]))

    writer.abort()

    assert _file_names(bucket) == set()
    assert writer.prepare_commit().is_empty
