"""Rows of a merge read, its I/O, and its memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from storage_lib.errors import CorruptFileError, InvalidInputError, NotFoundError
from storage_lib.file_store.merge_tree.compaction.full_compaction import FullCompaction
from storage_lib.file_store.merge_tree.merge_tree_reader import read_merged
from storage_lib.format.parquet_format import ParquetFormat
from storage_lib.io.environment import Environment
from storage_lib.schema.filter.column_reference import col
from storage_lib.schema.types.row_kind import RowKind
from tests.support.bucket_on_disk import BucketOnDisk, schema_of
from tests.support.counting_reader import CountingReader

INSERT, DELETE = RowKind.INSERT, RowKind.DELETE


def test_the_newest_commit_wins_and_a_deletion_takes_the_row_away(bucket: BucketOnDisk) -> None:
    bucket.commit([(1, "a"), (2, "b"), (3, "c")])
    bucket.commit([(2, "B"), (3, None)], [INSERT, DELETE])

    assert sorted(bucket.rows()) == [(1, "a"), (2, "B")]


def test_a_file_alone_in_its_keys_loses_its_deleted_rows_too(bucket: BucketOnDisk) -> None:
    bucket.commit([(1, "a"), (2, None)], [INSERT, DELETE])

    assert bucket.rows() == [(1, "a")]
    assert bucket.rows(drop_deletes=False) == [(1, "a"), (2, None)]


def test_columns_come_in_the_order_asked_with_or_without_system_columns(bucket: BucketOnDisk) -> None:
    bucket.commit([(1, "a"), (2, "b")])
    bucket.commit([(1, "A")])

    assert sorted(bucket.rows(["name", "id"])) == [("A", 1), ("b", 2)]
    assert sorted(bucket.rows(["name"])) == [("A",), ("b",)]
    assert bucket.rows(["name"], with_kv=True, ordered=True) == [(2, 0, "A"), (1, 0, "b")]
    assert bucket.batches(["name", "id"])[0].schema == pa.schema(
        [("name", pa.string()), pa.field("id", pa.int64(), False)]
    )


def test_a_condition_on_values_is_asked_of_the_newest_version_only(bucket: BucketOnDisk) -> None:
    bucket.commit([(1, "old"), (2, "old")])
    bucket.commit([(1, "new")])

    assert bucket.rows(["id"], col("name") == "old") == [(2,)]
    assert bucket.rows(["id"], col("name") == "new") == [(1,)]


def test_row_groups_without_a_wanted_key_are_not_read(environment: Environment) -> None:
    bucket = BucketOnDisk(
        schema_of("id BIGINT; name STRING", ["id"]), environment, file_format=ParquetFormat(row_group_rows_max=10)
    )
    bucket.commit([(key, "old") for key in range(100)])
    bucket.commit([(key, "new") for key in range(0, 100, 2)])
    bucket.reader = counting = CountingReader(bucket.reader)

    rows = bucket.rows(["name"], col("id").isin([40, 41]))

    assert sorted(rows) == [("new",), ("old",)]
    assert counting.rows_given <= 20


def test_of_files_only_the_rows_of_a_wanted_key_are_handed_out(environment: Environment) -> None:
    bucket = BucketOnDisk(
        schema_of("id BIGINT; name STRING", ["id"]), environment, file_format=ParquetFormat(row_group_rows_max=10)
    )
    bucket.commit([(key, "old") for key in range(100)])
    bucket.commit([(key, "new") for key in range(0, 100, 2)])
    bucket.reader = counting = CountingReader(bucket.reader)

    assert bucket.rows(["name"], col("id") == 41) == [("old",)]
    assert counting.rows_given == 1


def test_named_keys_are_found_at_both_ends_of_a_file_and_between(environment: Environment) -> None:
    bucket = BucketOnDisk(
        schema_of("id INT; name STRING", ["id"]), environment, file_format=ParquetFormat(row_group_rows_max=10)
    )
    bucket.commit([(key, "old") for key in range(-300, 300, 3)])
    bucket.commit([(key, "new") for key in range(-300, 300, 6)])

    named: list[object] = [297, -300, 0, 3, 4, -299, 2**31, 2**70, 1.5, 1000]

    assert sorted(bucket.rows(["id", "name"], col("id").isin(named))) == [
        (-300, "new"),
        (0, "new"),
        (3, "old"),
        (297, "old"),
    ]
    assert bucket.rows(["id"], col("id").isin([4, 2**70])) == []


@pytest.mark.parametrize("few", [True, False])
def test_a_condition_on_values_finds_the_newest_versions_only_whether_few_or_many_match(
    environment: Environment,
    few: bool,  # noqa: FBT001
) -> None:
    random = np.random.default_rng(4)
    newest: dict[int, int | None] = {}
    for keys, names in (("id BIGINT; score INT", ["id"]), ("day STRING; id BIGINT; score INT", ["day", "id"])):
        bucket = BucketOnDisk(schema_of(keys, names), environment, root=f"/{len(names)}-{few}", merge_bytes_max=4_000)
        newest.clear()
        for commit in range(6):
            ids = random.permutation(500)[: 400 if commit == 0 else 80].tolist()
            scores = random.integers(0, 100, len(ids)).tolist()
            kinds = [DELETE if commit and random.random() < 1 / 4 else INSERT for _ in ids]
            prefix = [()] * len(ids) if len(names) == 1 else [("d",)] * len(ids)
            rows = [(*day, each, score) for day, each, score in zip(prefix, ids, scores, strict=True)]
            bucket.commit(rows, kinds)
            newest |= {
                each: None if kind is DELETE else score for each, score, kind in zip(ids, scores, kinds, strict=True)
            }
        least = 96 if few else 20

        wanted = [(each, score) for each, score in newest.items() if score is not None and score >= least]

        assert wanted
        assert sorted(bucket.rows(["id", "score"], col("score") >= least)) == sorted(wanted)


def test_only_the_columns_needed_are_read(bucket: BucketOnDisk) -> None:
    bucket.commit([(1, "a"), (2, "b")])
    bucket.reader = counting = CountingReader(bucket.reader)

    bucket.rows(["name"])
    bucket.commit([(2, "B")])
    bucket.rows(["name"])

    assert counting.columns_asked == [("name",), ("id", "name"), ("id", "name")]


def test_files_whose_sequence_intervals_overlap_are_merged_by_sequence_number(bucket: BucketOnDisk) -> None:
    # Given: two interleaved writers, so that neither file is newer as a whole.
    bucket.commit([(1, "a1"), (2, "a2")])
    first = bucket.files
    bucket.files = ()
    writer = bucket.writer()
    writer._next_sequence = 0
    writer.write(bucket.batch([(2, "b0")]), pa.array([0], pa.int8()))
    writer._next_sequence = 5
    writer.write(bucket.batch([(1, "b5")]), pa.array([0], pa.int8()))
    second = writer.prepare_commit().new_files

    for files in (first + second, second + first):
        bucket.files = files
        assert bucket.rows(ordered=True) == [(1, "b5"), (2, "a2")]
        assert sorted(bucket.rows()) == [(1, "b5"), (2, "a2")]


def test_a_large_newer_run_beats_a_small_older_one(bucket: BucketOnDisk) -> None:
    bucket.commit([(5, "old"), (200, "stays")])
    bucket.commit([(key, "new") for key in range(100)])

    rows = dict(bucket.rows())

    assert rows == {**dict.fromkeys(range(100), "new"), 200: "stays"}


@pytest.mark.parametrize("ordered", [False, True])
def test_a_merge_holds_as_much_of_a_large_bucket_as_of_a_small_one(environment: Environment, ordered: bool) -> None:  # noqa: FBT001
    peaks = []
    for row_count in (20_000, 80_000):
        bucket = BucketOnDisk(
            schema_of("id BIGINT; name STRING", ["id"]),
            environment,
            root=f"/table-{row_count}",
            merge_bytes_max=400_000,
            file_format=ParquetFormat(row_group_rows_max=2_000),
        )
        bucket.commit([(key, f"{key:0100}") for key in range(row_count)])
        for start in range(3):
            bucket.commit([(key, f"{key:0100}") for key in range(start, row_count, 6)])

        before = pa.total_allocated_bytes()
        peak = rows_read = 0
        for batch in _read(bucket, ordered=ordered):
            rows_read += batch.num_rows
            peak = max(peak, pa.total_allocated_bytes() - before)

        assert rows_read == row_count
        peaks.append(peak)
    assert peaks[1] < 1.2 * peaks[0]
    assert peaks[1] < 80_000 * 110 / 3


def test_a_missing_file_is_named_with_what_to_do(bucket: BucketOnDisk) -> None:
    bucket.commit([(1, "a")])
    bucket.data_files.delete(bucket.files)

    with pytest.raises(NotFoundError, match=rf"{bucket.files[0].file_name} does not exist.*plan the read again"):
        bucket.rows()


def test_a_damaged_file_is_named(bucket: BucketOnDisk) -> None:
    bucket.commit([(1, "a")])
    path = f"/table/bucket-0/{bucket.files[0].file_name}"
    bucket.environment.file_io.replace(path, b"PAR1 nothing PAR1")

    with pytest.raises(CorruptFileError, match=bucket.files[0].file_name):
        bucket.rows()


def test_a_damaged_page_is_found_and_named(environment: Environment) -> None:
    bucket = BucketOnDisk(schema_of("id BIGINT; name STRING", ["id"]), environment)
    bucket.commit([(key, f"{key * 7919 % 10_007:08}") for key in range(10_000)])
    path = f"/table/bucket-0/{bucket.files[0].file_name}"
    data = bytearray(environment.file_io.read_bytes(path))
    data[-len(data) // 3 : -len(data) // 6] = bytes(len(data) // 6 + 1)[: len(data) // 3 - len(data) // 6]
    environment.file_io.replace(path, bytes(data))

    with pytest.raises(CorruptFileError, match=bucket.files[0].file_name):
        bucket.rows()


def test_a_file_with_other_than_its_recorded_rows_is_refused(bucket: BucketOnDisk) -> None:
    bucket.commit([(1, "a")])
    bucket.files = (replace(bucket.files[0], row_count=2),)

    with pytest.raises(CorruptFileError, match="holds 1 rows, but its manifest entry says 2"):
        bucket.rows()


def test_a_column_that_the_file_lacks_reads_as_null(environment: Environment) -> None:
    old = BucketOnDisk(schema_of("id BIGINT; name STRING", ["id"]), environment)
    old.commit([(1, "a")])
    old.compact(FullCompaction())
    new = BucketOnDisk(schema_of("id BIGINT; name STRING; age INT", ["id"]), environment, files=old.files)

    assert new.rows() == [(1, "a", None)]
    assert new.rows(["age"]) == [(None,)]


def test_a_read_of_no_column_at_all_is_refused(bucket: BucketOnDisk) -> None:
    with pytest.raises(InvalidInputError, match="at least one column"):
        bucket.rows([])


def _read(bucket: BucketOnDisk, *, ordered: bool) -> Iterator[pa.RecordBatch]:
    return read_merged(
        bucket.files,
        reader=bucket.reader,
        key_value=bucket.key_value,
        columns=["id", "name"],
        ordered=ordered,
        merge_bytes_max=bucket.merge_bytes_max,
    )
