"""Random lives of tables: Spark's own readers, our data source and a plain model give the same rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from storage_lib import AddColumn, AlterType, DropColumn, RenameColumn, SetOption
from storage_lib.schema.filter.filter_text import parse_filter
from storage_lib.spark import read
from storage_lib.spark.native import keys_merge, native_read
from storage_lib.spark.native.frame_by_keys import FrameByKeys
from storage_lib.spark.native.marked_frame import marked_frame
from storage_lib.spark.native.native_read import ENABLED, SnapshotRead, frame_of_table
from storage_lib.spark.native.replaced_frame import replaced_frame
from storage_lib.spark.translation.spark_schema import arrow_schema_of, struct_of
from storage_lib.table.read import large_runs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = pytest.mark.spark

KEYS = 60
TYPES = {
    "flag": "BOOLEAN",
    "tiny": "TINYINT",
    "whole": "INT",
    "single": "FLOAT",
    "double": "DOUBLE",
    "price": "DECIMAL(10, 2)",
    "wide": "DECIMAL(30, 5)",
    "text": "STRING",
    "code": "CHAR(3)",
    "data": "BYTES",
    "day": "DATE",
    "at": "TIMESTAMP(6)",
    "millis": "TIMESTAMP_LTZ(3)",
    "clock": "TIME(3)",
    "list": "ARRAY<INT>",
    "map": "MAP<STRING, BIGINT>",
    "part": "ROW<a INT, b STRING>",
}
WIDENED = {"tiny": "INT", "whole": "BIGINT", "single": "DOUBLE", "price": "DECIMAL(20, 4)", "code": "STRING"}
KINDS: dict[str, dict[str, Any]] = {
    "keyed": {"primary_key": ("k",), "bucket": 2},
    "partitioned": {"primary_key": ("p", "k"), "partition_by": ("p",), "bucket": 1},
    "vectors": {"primary_key": ("k",), "bucket": 2, "deletion_vectors__enabled": "true"},
    "appended": {"primary_key": (), "write_mode": "append-only", "bucket": -1},
    "counted": {"primary_key": (), "bucket": 1},
}
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
VALUES: dict[str, Callable[[Random], Any]] = {
    "BOOLEAN": lambda rng: rng.random() < 0.5,
    "TINYINT": lambda rng: rng.randint(-100, 100),
    "INT": lambda rng: rng.randint(-100, 100),
    "BIGINT": lambda rng: rng.randint(-100, 100),
    "FLOAT": lambda rng: rng.choice([0.0, -0.0, float("nan"), float("inf"), 1.5, -2.25]),
    "DOUBLE": lambda rng: rng.choice([0.0, -0.0, float("nan"), float("inf"), 1.5, -2.25]),
    "DECIMAL": lambda rng: Decimal(rng.choice([0, 150, -99999])) / 100,
    "STRING": lambda rng: rng.choice(["", "a", "abc", "ü€"]),
    "CHAR": lambda rng: rng.choice(["", "a", "abc", "ü€"]),
    "BYTES": lambda rng: rng.choice([b"", b"\x00\xff", b"abc"]),
    "DATE": lambda rng: dt.date(rng.choice([1, 1500, 1970, 9999]), 1, 3),
    "TIMESTAMP": lambda rng: dt.datetime(rng.choice([1970, 2024]), 1, 3, 4, 5, 6, 7_089),  # noqa: DTZ001  no zone
    "TIMESTAMP_LTZ": lambda rng: dt.datetime(rng.choice([1970, 2024]), 1, 3, 4, 5, 6, 7_000, dt.UTC),
    "TIME": lambda _: dt.time(4, 5, 6, 7_000),
    "ARRAY": lambda rng: [rng.choice([None, 1]) for _ in range(rng.randint(0, 2))],
    "MAP": lambda rng: [(key, rng.choice([None, 5])) for key in "ab"[: rng.randint(0, 2)]],
    "ROW": lambda rng: {"a": rng.choice([None, 1]), "b": "q"},
}
NOT_IN_ORC = {"clock", "day", "at", "millis", "code", "list", "map", "part"}
"""Columns that Spark's reader does not read from ORC, or not as we do."""


@dataclass
class Life:
    """A table and its expected rows. ``names`` are the current names of the columns, by their first ones."""

    rng: Random
    table: DynamicTable
    kind: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    added: int = 0

    def append(self) -> None:
        keys = self.rng.sample(range(KEYS), self.rng.randint(1, 25))
        new = [self._row(key) for key in keys]
        if self.table.schema.primary_keys:
            fresh = {(row["p"] if "p" in self.table.schema.primary_keys else None, row["k"]) for row in new}
            keyed = "p" in self.table.schema.primary_keys
            self.rows = [row for row in self.rows if (row["p"] if keyed else None, row["k"]) not in fresh]
        self.rows += new
        self.table.append(pa.Table.from_pylist(new, schema=self.table.schema.arrow_schema))

    def delete(self) -> None:
        if self.kind == "appended":
            return
        low = self.rng.randrange(KEYS)
        self.table.delete(f"k between {low} and {low + 8}")
        self.rows = [row for row in self.rows if not low <= row["k"] <= low + 8]

    def compact(self) -> None:
        self.table.compact(full=self.rng.random() < 0.5)

    def change_format(self) -> None:
        self.table = self.table.alter(SetOption("file.format", self.rng.choice(["parquet", "parquet", "orc", "avro"])))

    def add_column(self) -> None:
        self.added += 1
        name = f"more{self.added}"
        self.types[name] = self.rng.choice(["INT", "STRING", "DOUBLE"])
        self.table = self.table.alter(AddColumn(name, self.types[name]))
        for row in self.rows:
            row[name] = None

    def rename_column(self) -> None:
        old = self.rng.choice(["tiny", "text", "list"])
        if self.types.get(old) == TYPES[old]:
            self.added += 1
            new = f"named{self.added}"
            self.table = self.table.alter(RenameColumn(old, new))
            self.types = {new if name == old else name: type_ for name, type_ in self.types.items()}
            for row in self.rows:
                row[new] = row.pop(old)

    def drop_and_add_again(self) -> None:
        if self.types.get("whole") == "INT":
            self.table = self.table.alter(DropColumn("whole")).alter(AddColumn("whole", "INT"))
            for row in self.rows:
                row["whole"] = None

    def widen(self) -> None:
        name = self.rng.choice(list(WIDENED))
        if self.types.get(name) == TYPES[name]:
            self.types[name] = WIDENED[name]
            self.table = self.table.alter(AlterType(name, WIDENED[name]))

    def _row(self, key: int) -> dict[str, Any]:
        values = {name: self._value(type_) for name, type_ in self.types.items()}
        return {"k": key, "p": self.rng.choice(["a", "b", "c/d %"]), **values}

    def _value(self, type_: str) -> Any:
        if self.rng.random() < 0.2:
            return None
        return VALUES[type_.partition("(")[0].partition("<")[0]](self.rng)


STEPS: tuple[Callable[[Life], None], ...] = (
    *[Life.append] * 5,
    *[Life.delete] * 2,
    *[Life.compact] * 3,
    Life.change_format,
    Life.add_column,
    Life.rename_column,
    Life.drop_and_add_again,
    Life.widen,
)


@contextmanager
def by_data_source(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(ENABLED, "false")
    try:
        yield
    finally:
        spark.conf.set(ENABLED, "true")


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
        # A table that counts rows can't be altered.
        steps_of_kind = STEPS if kind != "counted" else (Life.append, Life.delete, Life.compact)
        rng.choice(steps_of_kind if step else (Life.append,))(life)
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


@pytest.mark.parametrize("seeds", [range(3), range(3, 6)], ids=["first", "second"])
def test_spark_reads_random_tables_as_the_model_and_the_data_source_do(
    spark: SparkSession, make_table: Callable[..., DynamicTable], seeds: range
) -> None:
    assert sum(run(spark, make_table, seed) for seed in seeds) > 0, "some files are read natively"


@pytest.mark.parametrize("seeds", [range(14, 17), range(22, 25)], ids=["first", "second"])
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


def test_tasks_merge_whole_rows_of_many_small_files(
    spark: SparkSession, make_table: Callable[..., DynamicTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys_merge, "HERE_BYTES_MAX", 0)
    monkeypatch.setattr(native_read, "replaced_frame", lambda *_: None)
    for seed in range(36, 39):
        run(spark, make_table, seed, kinds=("keyed", "partitioned"), steps=12, by_keys=True)


@pytest.mark.parametrize(
    ("seeds", "bytes_here"), [(range(30, 33), 0), (range(33, 36), 1 << 20)], ids=["by tasks", "in the driver"]
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
