"""A filter takes the same rows of NaN, -0.0 and null in each reader as Spark takes of the plain rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from storage_lib import DynamicTable, MemoryCatalog
from storage_lib.duckdb.duckdb_session import duckdb_session
from storage_lib.duckdb.snapshot_rows import SnapshotRows
from storage_lib.materialized.algebra import read_type
from storage_lib.schema.filter.filter_text import parse_filter
from storage_lib.spark import read, write
from storage_lib.spark.types.spark_schema import struct_of
from tests.support.deep_tests import thinned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
COLUMNS = {"id": "BIGINT NOT NULL", "d": "DOUBLE", "f": "FLOAT", "n": "INT"}
VALUES = [None, math.nan, math.nan, -math.inf, -1.5, -0.0, 0.0, 1.0, 2.5, math.inf]
LITERALS = ["'NaN'", "'NaN'", "-1.5", "0.0", "-0.0", "1.0", "2.5", "'Infinity'", "2"]
COMPARISONS = ["=", "<>", "<", "<=", ">", ">="]
NAN = math.nan
OF_POLARS = [
    pl.col("d") > 1.0,
    ~(pl.col("d") <= 1.0),
    pl.col("f") >= NAN,
    pl.col("d") == NAN,
    pl.col("d") < NAN,
    pl.col("d").is_between(0.0, math.inf),
    pl.col("d") == 0.0,
]


def _rows(drawn: Random, first: int, count: int) -> list[dict[str, Any]]:
    """Draw rows; some files have one value only, so that their bounds rule out most literals."""
    values = VALUES if drawn.random() < 0.4 else [math.nan, drawn.choice(VALUES)]
    return [
        {"id": id_, "d": drawn.choice(values), "f": drawn.choice(values), "n": drawn.choice([None, -1, 0, 1, 2])}
        for id_ in range(first, first + count)
    ]


def _condition(drawn: Random, depth: int = 2) -> str:
    if depth and drawn.random() < 0.5:
        left, right = (_condition(drawn, depth - 1) for _ in range(2))
        return drawn.choice([f"({left}) AND ({right})", f"({left}) OR ({right})", f"NOT ({left})"])
    column, (low, high) = drawn.choice("ddfn"), drawn.choices(LITERALS, k=2)
    if column == "n":
        low, high = drawn.choices(["-1", "0", "1.5"], k=2)
    return drawn.choice(
        [
            *(f"{column} {drawn.choice(COMPARISONS)} {low}" for _ in range(4)),
            f"{low} {drawn.choice(COMPARISONS)} {column}",
            f"{column} BETWEEN {low} AND {high}",
            f"{column} IN ({low}, {high})",
            f"{column} IS NULL",
        ]
    )


def _ids(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    return sorted(row["id"] for row in rows)


def _left_by_delete(rows: Sequence[dict[str, Any]], condition: str) -> list[int]:
    catalog = MemoryCatalog({"log.system": "none"})
    table = catalog.create_table("db.t", COLUMNS, primary_key=["id"])
    table.append(list(rows))
    table.delete(condition)
    return _ids(table.to_arrow(columns=["id"]).to_pylist())


@pytest.mark.parametrize("seed", thinned(range(6), 1))
def test_every_reader_takes_the_rows_that_spark_takes_of_the_plain_rows(
    spark: SparkSession, make_table: Callable[..., DynamicTable], seed: int
) -> None:
    drawn = Random(seed)  # noqa: S311  chance, not secrets
    table = make_table(columns=COLUMNS, bucket=3, write_only="true")
    rows: list[dict[str, Any]] = []
    for commit in range(6):
        added = _rows(drawn, len(rows), 4)
        table.append(added)
        rows += added
        if commit == 3:
            table.compact(full=True)
    plain = spark.createDataFrame([tuple(row.values()) for row in rows], struct_of(table.schema))
    conditions = [_condition(drawn) for _ in range(8)]
    answers = plain.selectExpr("id", *(f"({text}) IS TRUE AS c{place}" for place, text in enumerate(conditions)))
    taken = [row.asDict() for row in answers.collect()]

    for place, text in enumerate(conditions):
        expected = _ids([row for row in taken if row[f"c{place}"]])
        predicate = parse_filter(text)
        found = {
            "text": _ids(table.to_arrow(filter=text).to_pylist()),
            "Spark's read": sorted(row.id for row in read(spark, table, filter=predicate).select("id").collect()),
            "Spark's where": sorted(row.id for row in read(spark, table).where(text).select("id").collect()),
        }
        assert found == dict.fromkeys(found, expected), (seed, text)
        assert _left_by_delete(rows, text) == sorted(set(range(len(rows))) - set(expected)), (seed, text)
    frame = pl.DataFrame(pa.Table.from_pylist(rows, table.arrow_schema))
    for expression in OF_POLARS:
        assert _ids(table.to_arrow(filter=expression).to_pylist()) == frame.filter(expression)["id"].to_list()


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
@pytest.mark.parametrize("buckets", thinned(["3", "-1"]))
def test_both_zeros_and_nan_are_three_keys_for_each_reader_and_writer(
    spark: SparkSession, make_table: Callable[..., DynamicTable], kind: str, buckets: str
) -> None:
    columns = {"k": f"{kind} NOT NULL", "v": "STRING"}
    table = make_table(columns=columns, primary_key=("k",), bucket=buckets)
    keys = [0.0, -0.0, math.nan]
    expected = sorted((repr(key), "new") for key in keys)

    table.append([{"k": key, "v": "old"} for key in keys])
    table.compact(full=True)
    write(spark.createDataFrame([(key, "newer") for key in keys], struct_of(table.schema)), table)
    table.upsert([{"k": key, "v": "new"} for key in keys])

    for _ in range(2):
        assert sorted((repr(row["k"]), row["v"]) for row in table.to_arrow().to_pylist()) == expected
        assert sorted((repr(row.k), row.v) for row in read(spark, table).collect()) == expected
        assert [repr(row["k"]) for row in table.lookup([{"k": key} for key in keys]).to_pylist()] == list(
            map(repr, keys)
        )
        with duckdb_session(1 << 40) as session:
            types = {"k": read_type("double"), "v": read_type("string")}
            found = session.rows(SnapshotRows(session, table, types).select(table.inspect.latest_snapshot_id() or 0))
        assert sorted((repr(row["k"]), row["v"]) for row in found.to_pylist()) == expected
        table.compact(full=True)
