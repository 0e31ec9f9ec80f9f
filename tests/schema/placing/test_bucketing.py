"""The bucket of a row, and rows split by partition and bucket."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage_lib.errors import InvalidInputError
from storage_lib.schema.encoding.binary_row import EMPTY_ROW, encode_row
from storage_lib.schema.encoding.murmur import hash_rows
from storage_lib.schema.placing.bucketing import bucket_of, group_rows
from storage_lib.schema.table_schema import TableSchema, new_table_schema
from storage_lib.schema.types.data_types import parse_data_type
from tests.support.golden_rows import GOLDEN_ROWS, SIXTY_FIELDS, SIXTY_FIELDS_HASH, GoldenRow

INT = parse_data_type("INT")
STRING = parse_data_type("STRING")
BIGINT = parse_data_type("BIGINT")


def _schema(
    columns: Mapping[str, str], keys: Sequence[str], partition_keys: Sequence[str] = (), **options: str
) -> TableSchema:
    return new_table_schema(
        [(name, parse_data_type(text)) for name, text in columns.items()],
        primary_keys=keys,
        partition_keys=partition_keys,
        options={name.replace("_", "-"): value for name, value in options.items()},
        time_millis=0,
    )


def _rows(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _murmur(row: bytes) -> int:
    """Compute the hash word by word, as its author describes it; signed."""
    hashed = 42
    for at in range(0, len(row), 4):
        word = int.from_bytes(row[at : at + 4], "little") * 0xCC9E2D51 & 0xFFFFFFFF
        hashed ^= (word << 15 | word >> 17) * 0x1B873593 & 0xFFFFFFFF
        hashed = ((hashed << 13 | hashed >> 19) & 0xFFFFFFFF) * 5 + 0xE6546B64 & 0xFFFFFFFF
    hashed ^= len(row)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        hashed = (hashed ^ hashed >> shift) * factor & 0xFFFFFFFF
    return hashed - (1 << 32) if hashed >> 31 else hashed


@pytest.mark.parametrize("golden", GOLDEN_ROWS.values(), ids=GOLDEN_ROWS)
def test_a_row_has_the_hash_that_other_engines_compute(golden: GoldenRow) -> None:
    assert hash_rows(golden.columns, golden.types).tolist() == [golden.hash]


def test_sixty_fields_with_nulls_have_the_hash_that_other_engines_compute() -> None:
    columns = [pa.array([value], pa.int32()) for value in SIXTY_FIELDS]
    assert hash_rows(columns, [INT] * 60).tolist() == [SIXTY_FIELDS_HASH]


@pytest.mark.parametrize("golden", GOLDEN_ROWS.values(), ids=GOLDEN_ROWS)
def test_a_row_falls_into_the_bucket_that_other_engines_put_it(golden: GoldenRow) -> None:
    names = [f"c{index}" for index in range(len(golden.types))]
    schema = new_table_schema(list(zip(names, golden.types, strict=True)), options={"bucket": "7"}, time_millis=0)
    batch = pa.RecordBatch.from_arrays(golden.columns, names=names)
    buckets = bucket_of(batch, schema)
    assert buckets.dtype == np.int32
    assert buckets.tolist() == [golden.bucket]


@given(st.lists(st.tuples(st.text("ab☃", max_size=30) | st.none(), st.integers(-(2**63), 2**63 - 1)), max_size=60))
@settings(max_examples=100, derandomize=True, deadline=None)
def test_columns_hash_as_their_rows_do_one_by_one(rows: list[tuple[str | None, int]]) -> None:
    columns = [pa.array([text for text, _ in rows], pa.string()), pa.array([number for _, number in rows], pa.int64())]
    expected = [_murmur(encode_row(row, [STRING, BIGINT])[4:]) for row in rows]
    assert hash_rows(columns, [STRING, BIGINT]).tolist() == expected


def test_a_column_longer_than_a_chunk_and_with_a_few_long_strings_hashes_as_its_rows_do() -> None:
    texts = [f"{number}" * (number % 5) for number in range(40_000)]
    texts[20_000] = "long" * 5_000
    expected = [_murmur(encode_row([text], [STRING])[4:]) for text in texts[19_990:20_010]]
    assert hash_rows([pa.array(texts)], [STRING])[19_990:20_010].tolist() == expected


def test_only_the_bucket_key_decides_and_in_its_own_order() -> None:
    schema = _schema({"a": "BIGINT", "b": "BIGINT"}, ["a", "b"], bucket="7", bucket_key="b")
    ones, numbers = pa.array([1, 1, 1]), pa.array([1, -1, 1234567890123])
    assert bucket_of(_rows(a=ones, b=numbers), schema).tolist() == [5, 0, 1]


def test_partition_columns_are_no_part_of_the_bucket_key() -> None:
    schema = _schema({"dt": "STRING", "id": "BIGINT"}, ["dt", "id"], ["dt"], bucket="7")
    assert bucket_of(_rows(id=pa.array([1, -1])), schema).tolist() == [5, 0]


def test_a_partition_may_have_been_written_with_another_number_of_buckets() -> None:
    schema = _schema({"id": "BIGINT"}, ["id"], bucket="2")
    assert bucket_of(_rows(id=pa.array([1])), schema, bucket_count=7).tolist() == [5]


def test_one_bucket_needs_no_hash() -> None:
    schema = _schema({"id": "BIGINT"}, ["id"], bucket="1")
    assert bucket_of(_rows(id=pa.array([1, 2, 3])), schema).tolist() == [0, 0, 0]


def test_the_modulo_function_takes_the_key_itself() -> None:
    schema = _schema({"id": "BIGINT"}, ["id"], bucket="5", **{"bucket_function.type": "mod"})
    assert bucket_of(_rows(id=pa.array([0, 4, 5, -1])), schema).tolist() == [0, 4, 0, 4]


@pytest.mark.parametrize("options", [{"bucket": "-1"}, {"bucket": "4", "bucket-function.type": "hive"}])
def test_tables_whose_buckets_we_cannot_compute_are_refused_by_option(options: dict[str, str]) -> None:
    fixed = _schema({"id": "BIGINT"}, ["id"], bucket="4")
    foreign = TableSchema(
        id=0,
        fields=fixed.fields,
        primary_keys=("id",),
        partition_keys=(),
        options=options,
        time_millis=0,
        highest_field_id=0,
    )
    with pytest.raises(InvalidInputError, match="option bucket"):
        bucket_of(_rows(id=pa.array([1])), foreign)


def test_no_rows_make_no_groups() -> None:
    schema = _schema({"id": "BIGINT"}, ["id"], bucket="4")
    empty = _rows(id=pa.array([], pa.int64()))
    assert bucket_of(empty, schema).tolist() == []
    assert list(group_rows(empty, schema)) == []


def test_rows_of_one_bucket_and_no_partition_are_one_group_in_order() -> None:
    schema = _schema({"id": "BIGINT"}, ["id"], bucket="1")
    ((partition, bucket, indices),) = group_rows(_rows(id=pa.array([3, 1, 2])), schema)
    assert (partition, bucket, indices.tolist()) == (EMPTY_ROW, 0, [0, 1, 2])
    assert indices.dtype == np.int64


PARTITIONS = {
    "BIGINT": st.integers(-2, 2),
    "STRING": st.sampled_from(["", "a", "a longer partition", "☃"]),
    "BOOLEAN": st.booleans(),
}


@st.composite
def _partitioned(draw: st.DrawFn) -> tuple[list[str], list[tuple[object, ...]], int]:
    names = draw(st.lists(st.sampled_from(sorted(PARTITIONS)), min_size=1, max_size=3))
    rows = st.tuples(*(PARTITIONS[name] | st.none() for name in names), st.integers(0, 50))
    return names, draw(st.lists(rows, min_size=1, max_size=80)), draw(st.sampled_from([1, 2, 7, 40_000]))


@given(_partitioned())
@settings(max_examples=150, derandomize=True, deadline=None)
def test_every_row_is_in_the_group_of_its_partition_and_bucket_in_arrival_order(
    table: tuple[list[str], list[tuple[object, ...]], int],
) -> None:
    type_names, rows, bucket_count = table
    names = [f"p{index}" for index in range(len(type_names))]
    types = [parse_data_type(text) for text in type_names]
    # As in tables of other writers, where partition columns may be null.
    schema = TableSchema(
        id=0,
        fields=new_table_schema(
            [*zip(names, types, strict=True), ("id", BIGINT)], options={"bucket": "1"}, time_millis=0
        ).fields,
        primary_keys=(*names, "id"),
        partition_keys=tuple(names),
        options={"bucket": str(bucket_count)},
        time_millis=0,
        highest_field_id=len(names),
    )
    arrays = [
        pa.array(column, type_.arrow) for column, type_ in zip(zip(*rows, strict=True), [*types, BIGINT], strict=True)
    ]
    batch = pa.RecordBatch.from_arrays(arrays, names=[*names, "id"])
    expected: dict[tuple[bytes, int], list[int]] = defaultdict(list)
    for number, (row, bucket) in enumerate(zip(rows, bucket_of(batch, schema).tolist(), strict=True)):
        expected[encode_row(row[:-1], types), bucket].append(number)
    groups = [((partition, bucket), indices.tolist()) for partition, bucket, indices in group_rows(batch, schema)]
    assert len(groups) == len(expected)
    assert dict(groups) == expected


def test_more_groups_than_a_short_sort_can_number_are_still_told_apart() -> None:
    schema = _schema({"dt": "INT", "id": "BIGINT"}, ["dt", "id"], ["dt"], bucket="7")
    days = np.arange(30_000, dtype=np.int32)[::-1]
    batch = _rows(dt=pa.array(np.concatenate([days, days])), id=pa.array(np.zeros(60_000, np.int64)))
    groups = {partition: indices.tolist() for partition, _, indices in group_rows(batch, schema)}
    assert groups[encode_row([29_999], [INT])] == [0, 30_000]
    assert groups[encode_row([0], [INT])] == [29_999, 59_999]
    assert len(groups) == 30_000


def test_combinations_of_many_partition_columns_do_not_overflow() -> None:
    names = [f"p{index}" for index in range(8)]
    schema = _schema({**dict.fromkeys(names, "BIGINT"), "id": "BIGINT"}, [*names, "id"], names, bucket="2")
    random = np.random.default_rng(7)
    columns = {name: pa.array(random.permutation(2_000)) for name in names}
    batch = _rows(**columns, id=pa.array(np.zeros(2_000, np.int64)))
    groups = {partition: indices.tolist() for partition, _, indices in group_rows(batch, schema)}
    assert len(groups) == 2_000
    row = [columns[name][1_234].as_py() for name in names]
    assert groups[encode_row(row, [BIGINT] * 8)] == [1_234]
