"""Random lives of tables: Spark's own readers, our data source and a plain model give the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from storage_lib.schema.filter.filter_text import parse_filter
from storage_lib.spark import read
from storage_lib.spark.reading import keys_merge, native_read
from storage_lib.spark.reading.frame_by_keys import FrameByKeys
from storage_lib.spark.reading.marked_frame import marked_frame
from storage_lib.spark.reading.native_read import ENABLED, SnapshotRead, frame_of_table
from storage_lib.spark.reading.replaced_frame import replaced_frame
from storage_lib.spark.types.spark_schema import arrow_schema_of, struct_of
from storage_lib.spark.versions.spark_feature import SparkFeature
from storage_lib.table.read import large_runs
from tests.support.deep_tests import thinned
from tests.support.evolving_life import KINDS, TYPES, Life, steps_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = pytest.mark.spark

CONDITIONS = (
    ("double", "double > 1"),
    ("double", "double = double"),
    ("single", "single <= 0 or single is null"),
    ("double", "not (double < 100)"),
    ("millis", "millis < timestamp '2024-01-03 04:05:06.0075'"),
    ("at", "at > timestamp_ntz '1969-12-31 00:00:00'"),
    ("k", "k between 10 and 20"),
    ("p", "p = 'b' and k > 5"),
    ("p", "p is null or p <> 'a'"),
    ("price", "price = 1.50"),
    ("text", "text = '' or text like 'a%'"),
    ("day", "day >= date '1900-01-01'"),
    ("part", "part.a = 1"),
    ("k", "k in (1, 2, 3, null)"),
)
NOT_IN_ORC = {"clock", "day", "at", "millis", "code", "list", "map", "part"}
"""Columns that Spark's reader does not read from ORC, or not as we do."""


@contextmanager
def by_data_source(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(ENABLED, "false")
    try:
        yield
    finally:
        spark.conf.set(ENABLED, "true")


@pytest.fixture(autouse=True)
def _types_of_this_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    if not SparkFeature.TIME.is_here:
        monkeypatch.delitem(TYPES, "clock")


def texts_of(df: DataFrame) -> list[str]:
    return sorted(str(row) for row in df.collect())


def expected(spark: SparkSession, life: Life) -> DataFrame:
    struct = struct_of(life.table.schema)
    rows = pa.Table.from_pylist(life.rows, schema=life.table.schema.arrow_schema)
    return spark.createDataFrame(rows.cast(arrow_schema_of(struct)), struct)


def run(
    spark: SparkSession,
    make_table: Callable[..., DynamicTable],
    seed: int,
    steps: int = 8,
    kinds: Sequence[str] = tuple(KINDS),
    *,
    by_keys: bool = False,
) -> int:
    """Return the number of files that were read natively. ``by_keys``: reads may merge keys, or find them merged."""
    rng = Random(seed)  # noqa: S311  reproducible
    kind = rng.choice(kinds)
    left_out = rng.choice([{"clock"}, {"clock"}, NOT_IN_ORC, set()])
    types = {name: type_ for name, type_ in TYPES.items() if name not in left_out}
    columns = {"k": "BIGINT NOT NULL", "p": "STRING NOT NULL", **types}
    life = Life(rng=rng, table=make_table(f"life{seed}", columns=columns, **KINDS[kind]), kind=kind, types=types)
    native = 0
    for step in range(steps):
        rng.choice(steps_of(kind) if step else (Life.append,))(life)
        if step % 3 and step < steps - 1:
            continue
        names = [each.name for each in life.table.schema.fields]
        condition = rng.choice([text for name, text in CONDITIONS if name in names])
        native += frame_of_table(spark, life.table, SnapshotRead(columns=names)).summary.native_files
        truth = expected(spark, life)
        found = read(spark, life.table)
        with by_data_source(spark):
            ours = read(spark, life.table)
        if by_keys:
            wanted = SnapshotRead(columns=names, needed=frozenset(names))
            found = frame_of_table(spark, life.table, wanted).df
            # The files of other keys are left out of this plan.
            of_keys = rng.choice(("k = 7", "k BETWEEN 10 AND 20", "k > 25"))
            wanted = replace(wanted, predicate=parse_filter(of_keys))
            few = frame_of_table(spark, life.table, wanted).df.where(of_keys)
            assert texts_of(few) == texts_of(truth.where(of_keys)), f"seed {seed}, step {step}, {kind}, {of_keys}"
        where = f"seed {seed}, step {step}, {kind}"
        assert texts_of(found) == texts_of(truth), where
        assert found.schema == ours.schema, where
        # The filter of one query must not change the next query of the same frame.
        for each in (condition, "true"):
            rows = texts_of(truth.where(each))
            assert texts_of(found.where(each)) == rows, f"{where}: {each} after {condition}"
            assert texts_of(ours.where(each)) == rows, f"{where}: {each} after {condition}"
    return native


@pytest.mark.parametrize("seeds", thinned([range(2), range(2, 6)]), ids=str)
def test_spark_reads_random_tables_as_the_model_and_the_data_source_do(
    spark: SparkSession, make_table: Callable[..., DynamicTable], seeds: range
) -> None:
    assert sum(run(spark, make_table, seed) for seed in seeds) > 0, "some files are read natively"


@pytest.mark.parametrize("seeds", thinned([range(14, 15), range(15, 17), range(22, 25)]), ids=str)
def test_newer_rows_replace_those_of_large_files_whatever_their_number(
    spark: SparkSession, make_table: Callable[..., DynamicTable], monkeypatch: pytest.MonkeyPatch, seeds: range
) -> None:
    monkeypatch.setattr(large_runs, "ROWS_PER_NEWER_ROW_MIN", 0)
    found: list[FrameByKeys] = []

    def noted(*arguments: Any) -> FrameByKeys | None:
        frame = replaced_frame(*arguments)
        found.extend([] if frame is None else [frame])
        return frame

    monkeypatch.setattr(native_read, "replaced_frame", noted)
    for seed in seeds:
        run(spark, make_table, seed, kinds=("keyed", "partitioned"), steps=12)
    assert found, "some reads replace rows"


@pytest.mark.parametrize("seeds", thinned([range(36, 37), range(37, 39)]), ids=str)
def test_tasks_merge_whole_rows_of_many_small_files(
    spark: SparkSession, make_table: Callable[..., DynamicTable], monkeypatch: pytest.MonkeyPatch, seeds: range
) -> None:
    monkeypatch.setattr(keys_merge, "HERE_BYTES_MAX", 0)
    monkeypatch.setattr(native_read, "replaced_frame", lambda *_: None)
    for seed in seeds:
        run(spark, make_table, seed, kinds=("keyed", "partitioned"), steps=12, by_keys=True)


@pytest.mark.parametrize(
    ("seeds", "bytes_here"),
    [
        pytest.param(range(30, 31), 0, id="by tasks"),
        pytest.param(range(33, 34), 1 << 20, id="in the driver"),
        pytest.param(range(31, 33), 0, id="more by tasks", marks=pytest.mark.deep),
        pytest.param(range(34, 36), 1 << 20, id="more in the driver", marks=pytest.mark.deep),
    ],
)
def test_a_merge_of_the_keys_leaves_the_rows_that_a_merge_of_all_columns_leaves(
    spark: SparkSession,
    make_table: Callable[..., DynamicTable],
    monkeypatch: pytest.MonkeyPatch,
    seeds: range,
    bytes_here: int,
) -> None:
    monkeypatch.setattr(native_read, "KEYS_FIRST_BYTES_MIN", 0)
    monkeypatch.setattr(keys_merge, "HERE_BYTES_MAX", bytes_here)
    monkeypatch.setattr(native_read, "replaced_frame", lambda *_: None)
    found: list[FrameByKeys] = []

    def noted(*arguments: Any, **options: Any) -> FrameByKeys | None:
        frame = marked_frame(*arguments, **options)
        found.extend([] if frame is None else [frame])
        return frame

    monkeypatch.setattr(native_read, "marked_frame", noted)
    for seed in seeds:
        run(spark, make_table, seed, kinds=("keyed", "partitioned"), steps=12, by_keys=True)
    assert found, "some reads leave out rows by their keys"
