"""Bounds of key ranges, the footers read for them, and what a task of one range decodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.key_range import KeyRange
from storage_lib.file_store.data_file.row_group_keys import RowGroupKeys, groups_in_range
from storage_lib.file_store.planning.key_cuts import KeyCuts, KeyOrder
from storage_lib.file_store.split import Split
from storage_lib.format.parquet_format import ParquetFormat
from storage_lib.io.environment import Environment
from storage_lib.schema.types.data_types import parse_data_type
from tests.support.bucket_on_disk import BucketOnDisk, schema_of
from tests.support.counting_reader import CountingReader
from tests.support.data_file_metas import compare_numbers, file_meta
from tests.support.fake_environment import fake_environment

BIGINT = parse_data_type("BIGINT")
NUMBERS = KeyOrder(types=(BIGINT,), comparable_key=compare_numbers)


class Footers:
    """Footers with ten row groups of even key intervals; counts the reads."""

    def __init__(self, *, bound: bool = True) -> None:
        self.read: list[str] = []
        self.bound = bound

    def __call__(self, _split: Split, file: DataFileMeta) -> Sequence[RowGroupKeys] | None:
        self.read.append(file.file_name)
        (low,), (high,) = compare_numbers(file.min_key), compare_numbers(file.max_key)
        step = (high - low + 1) // 10
        lows = range(low, low + 10 * step, step)
        return [RowGroupKeys(low=(each,) if self.bound else (), high=(), row_count=100) for each in lows]


def split_of(*files: DataFileMeta) -> Split:
    return Split(snapshot_id=1, partition=b"", bucket=0, files=files)


def ranges_of(splits: Sequence[Split]) -> list[tuple[object, object]]:
    return [(None, None) if s.key_range is None else (s.key_range.low, s.key_range.high) for s in splits]


def test_ranges_begin_where_row_groups_do_and_follow_one_another() -> None:
    split = split_of(file_meta("a.parquet", 0, 999, size=1000), file_meta("b.parquet", 500, 999, size=100))

    splits = KeyCuts(order=NUMBERS, row_group_keys=Footers()).cut([split], 300)

    assert ranges_of(splits) == [(None, (300,)), ((300,), (550,)), ((550,), (850,)), ((850,), None)]
    assert [[file.file_name for file in each.files] for each in splits] == [
        ["a.parquet"],
        ["a.parquet", "b.parquet"],
        ["a.parquet", "b.parquet"],
        ["a.parquet", "b.parquet"],
    ]


def test_small_splits_and_single_files_are_left_whole_without_a_footer() -> None:
    footers = Footers()
    small = split_of(file_meta("a.parquet", 0, 999, size=100), file_meta("b.parquet", 0, 999, size=100))
    clean = split_of(file_meta("c.parquet", 0, 999, size=10_000))

    splits = KeyCuts(order=NUMBERS, row_group_keys=footers).cut([small, clean], 300)

    assert splits == (small, clean)
    assert footers.read == []


def test_a_plan_reads_a_bounded_number_of_footers_and_each_only_once() -> None:
    footers = Footers()
    splits = [
        split_of(*(file_meta(f"{bucket}-{index}.parquet", 0, 999, size=1000 + bucket) for index in range(20)))
        for bucket in range(30)
    ]
    cuts = KeyCuts(order=NUMBERS, row_group_keys=footers)

    first, again = cuts.cut(splits, 1000), cuts.cut(splits, 1000)

    assert first == again
    assert len(footers.read) == len(set(footers.read)) == 128
    assert {name.split("-")[0] for name in footers.read} == {str(bucket) for bucket in range(14, 30)}
    assert len(first) > len(splits)


@pytest.mark.parametrize(
    ("order", "name", "footers"),
    [
        (None, "a.parquet", Footers()),
        (NUMBERS, "a.orc", Footers()),
        (NUMBERS, "a.parquet", Footers(bound=False)),
        (NUMBERS, "a.parquet", lambda *_: None),
    ],
    ids=["without a key", "another format", "statistics without bounds", "no statistics"],
)
def test_files_that_every_task_would_decode_whole_are_not_divided(
    order: KeyOrder | None, name: str, footers: Callable[..., Sequence[RowGroupKeys] | None]
) -> None:
    split = split_of(file_meta(name, 0, 999, size=1000), file_meta("b.parquet", 0, 999, size=1000))

    assert KeyCuts(order=order, row_group_keys=footers).cut([split], 300) == (split,)


def test_a_range_reads_the_row_groups_that_can_hold_its_keys() -> None:
    groups = [
        RowGroupKeys(low=(1, "a"), high=(1, "m"), row_count=1),
        RowGroupKeys(low=(1, "n"), high=(1, "z"), row_count=1),
        RowGroupKeys(low=(2,), high=(4,), row_count=1),
        RowGroupKeys(low=(), high=(), row_count=1),
        RowGroupKeys(low=(9,), high=(9,), row_count=1),
    ]

    def found(low: tuple[object, ...] | None, high: tuple[object, ...] | None) -> range:
        return groups_in_range(groups, KeyRange(low=low, high=high))  # type: ignore[arg-type]

    assert found(None, (1, "n")) == range(4)
    assert found((1, "n"), (2,)) == range(1, 4)
    assert found((4, "x"), (9,)) == range(2, 4)
    assert found((9, "x"), None) == range(3, 5)
    assert groups_in_range(groups[:3], KeyRange(low=(5,), high=None)) == range(0)


def test_a_task_decodes_the_row_groups_of_its_range_only() -> None:
    bucket = _bucket(fake_environment())
    bucket.reader = counting = CountingReader(bucket.reader)

    rows = bucket.rows(key_range=KeyRange(low=(40,), high=(60,)))

    assert sorted(rows) == [(key, "new" if key % 2 == 0 else "old") for key in range(40, 60)]
    assert counting.rows_given <= 40


def test_a_single_file_of_a_range_is_read_without_the_keys_of_other_ranges() -> None:
    bucket = _bucket(fake_environment())
    bucket.files = bucket.files[:1]

    names = bucket.rows(["name"], key_range=KeyRange(low=None, high=(13,)))

    assert len(names) == len(range(0, 100, 2)[:7])


def test_a_bound_that_the_key_column_cannot_hold_is_refused() -> None:
    bucket = BucketOnDisk(schema_of("id TIMESTAMP(3); name STRING", ["id"]), fake_environment())

    with pytest.raises(InvalidInputError, match="not a value of the key columns"):
        bucket.rows(key_range=KeyRange(low=(1,), high=None))


def test_row_groups_of_a_file_bound_its_keys() -> None:
    bucket = _bucket(fake_environment())
    largest = max(bucket.files, key=lambda file: file.row_count)

    groups = bucket.reader.row_group_keys(largest)

    assert groups is not None
    assert [(group.low, group.high, group.row_count) for group in groups] == [
        ((start,), (start + 9,), 10) for start in range(0, 100, 10)
    ]
    assert bucket.reader.row_group_keys(replace(largest, file_name="x.orc")) is None


def _bucket(environment: Environment) -> BucketOnDisk:
    bucket = BucketOnDisk(
        schema_of("id BIGINT; name STRING", ["id"]), environment, file_format=ParquetFormat(row_group_rows_max=10)
    )
    bucket.commit([(key, "old") for key in range(100)])
    bucket.commit([(key, "new") for key in range(0, 100, 2)])
    return bucket
