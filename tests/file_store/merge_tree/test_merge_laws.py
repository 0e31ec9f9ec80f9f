"""However a history of changes is split into runs, cut into pieces and compacted, reads agree with a dictionary."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage_lib.file_store.merge_tree.compaction.full_compaction import FullCompaction
from storage_lib.file_store.merge_tree.compaction.leveled_compaction import LeveledCompaction
from storage_lib.file_store.merge_tree.compaction.universal_compaction import UniversalCompaction
from storage_lib.format.parquet_format import ParquetFormat
from storage_lib.schema.types.row_kind import RowKind
from tests.support.bucket_on_disk import BucketOnDisk, schema_of
from tests.support.fake_environment import fake_environment

INTEGERS = st.integers(0, 12) | st.sampled_from([-(2**63), 2**63 - 1, -1])
TEXTS = st.text("abé☃", max_size=3) | st.sampled_from(["12345678", "123456789", "12345678a"])
SMALL = st.integers(-3, 3)
KEYS: dict[str, tuple[str, st.SearchStrategy[tuple[Any, ...]]]] = {
    "bigint": ("BIGINT", st.tuples(INTEGERS)),
    "int, tinyint": ("INT; TINYINT", st.tuples(SMALL, SMALL)),
    "string": ("STRING", st.tuples(TEXTS)),
    "string, bigint": ("STRING; BIGINT", st.tuples(TEXTS, SMALL)),
    "bytes": ("BYTES", st.tuples(st.binary(max_size=2))),
    "decimal": ("DECIMAL(10, 2)", st.tuples(SMALL.map(lambda cents: Decimal(cents).scaleb(-2)))),
    "wide decimal": (
        "DECIMAL(30, 2)",
        st.tuples(st.integers(-(10**25), 10**25).map(lambda cents: Decimal(cents).scaleb(-2))),
    ),
    "date": ("DATE", st.tuples(st.dates(date(1969, 12, 28), date(1970, 1, 4)))),
    "time": ("TIME(3)", st.tuples(st.integers(0, 5).map(lambda millis: time(0, 0, 0, millis * 1000)))),
    "timestamp(3)": ("TIMESTAMP(3)", st.tuples(SMALL.map(lambda s: datetime(1970, 1, 1, 0, 1, 3 + s)))),  # noqa: DTZ001
    "timestamp_ltz": (
        "TIMESTAMP_LTZ(6)",
        st.tuples(SMALL.map(lambda s: datetime(1970, 1, 1, 0, 1, 3 + s, tzinfo=ZoneInfo("UTC")))),
    ),
    "boolean": ("BOOLEAN", st.tuples(st.booleans())),
    "double": ("DOUBLE", st.tuples(st.sampled_from([-1.5, -0.0, 0.0, 2.0, float("inf"), float("-inf")]))),
    "float": ("FLOAT", st.tuples(st.sampled_from([-1.5, 0.25, 2.0]))),
}


def _bucket(key: str, *, row_group_rows: int, target_file_size: int, merge_bytes_max: int) -> BucketOnDisk:
    types = KEYS[key][0].split("; ")
    columns = "; ".join(f"k{index} {type_}" for index, type_ in enumerate(types)) + "; v INT"
    return BucketOnDisk(
        schema_of(columns, [f"k{index}" for index in range(len(types))]),
        fake_environment(),
        target_file_size=target_file_size,
        merge_bytes_max=merge_bytes_max,
        file_format=ParquetFormat(row_group_rows_max=row_group_rows),
    )


Commit = Sequence[tuple[tuple[Any, ...], int | None]]


def _commit(bucket: BucketOnDisk, model: dict[str, tuple[Any, ...]], changes: Commit) -> None:
    rows = [(*key, value) for key, value in changes]
    kinds = [RowKind.DELETE if value is None else RowKind.INSERT for _, value in changes]
    bucket.commit(rows, kinds)
    for key, value in changes:
        if value is None:
            model.pop(repr(key), None)
        else:
            model[repr(key)] = (*key, value)


def _spelled(row: tuple[Any, ...]) -> str:
    """Return the row as text that tells 0.0 from -0.0; Arrow's versions have different objects for the zone UTC."""
    values = (value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else value for value in row)
    return repr(tuple(values))


@pytest.mark.parametrize("key", KEYS)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_merge_read_of_any_history_is_what_a_dictionary_holds(key: str, data: st.DataObject) -> None:
    change = st.tuples(KEYS[key][1], st.none() | st.integers(0, 99))
    commits = data.draw(st.lists(st.lists(change, min_size=1, max_size=8), min_size=1, max_size=6))
    bucket = _bucket(
        key,
        row_group_rows=data.draw(st.integers(1, 5)),
        target_file_size=data.draw(st.sampled_from([1, 10**9])),
        merge_bytes_max=data.draw(st.sampled_from([1, 200, 10**9])),
    )
    model: dict[str, tuple[Any, ...]] = {}

    for changes in commits:
        _commit(bucket, model, changes)
        action = data.draw(st.sampled_from(["leave", "full", "universal", "leveled"]))
        if action == "full":
            bucket.compact(FullCompaction())
        elif action == "universal":
            bucket.compact(UniversalCompaction(compaction_trigger=2))
        elif action == "leveled":
            bucket.compact(LeveledCompaction(level0_trigger=2, level_base_bytes=1500, level_multiplier=2))

    expected = sorted(map(_spelled, model.values()))
    in_key_order = bucket.rows(ordered=True)
    assert sorted(map(_spelled, bucket.rows())) == expected
    assert sorted(map(_spelled, in_key_order)) == expected
    keys = [bucket.key_value.comparable_key(bucket.key_value.key_bytes(bucket.batch([row]), 0)) for row in in_key_order]
    assert keys == sorted(keys)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    commits=st.lists(
        st.lists(st.tuples(st.tuples(st.integers(0, 40)), st.none() | st.integers()), min_size=1, max_size=30),
        min_size=2,
        max_size=5,
    ),
    merge_bytes_max=st.integers(1, 2000),
)
def test_any_cutting_of_a_section_gives_the_same_rows(commits: list[Commit], merge_bytes_max: int) -> None:
    bucket = _bucket("bigint", row_group_rows=4, target_file_size=10**9, merge_bytes_max=10**9)
    commits = [[(key, None if value is None else value % 100) for key, value in changes] for changes in commits]
    for changes in commits:
        _commit(bucket, {}, changes)

    whole = bucket.rows(["k0", "v"], ordered=True, with_kv=True, drop_deletes=False)

    bucket.merge_bytes_max = merge_bytes_max
    assert bucket.rows(["k0", "v"], ordered=True, with_kv=True, drop_deletes=False) == whole
    assert sorted(bucket.rows(["k0", "v"], with_kv=True, drop_deletes=False)) == sorted(whole)
