"""Spark's native expression computes the same bucket for every row as the library."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from storage_lib.schema.placing.bucketing import bucket_of
from storage_lib.schema.table_schema import TableSchema, new_table_schema
from storage_lib.schema.types.type_spelling import parse_columns
from storage_lib.spark.types.jvm_bucket import jvm_bucket
from storage_lib.spark.writing.bucket_distribution import with_bucket, with_python_bucket
from tests.support.deep_tests import thinned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

RANDOM = np.random.default_rng(5)
LETTERS = list("aZ9 _-/äß€漢😀")
TEXTS = ["", "a", "seven77", "eight888", "äöüß", "漢字漢字", "sixteen letters."] + [
    "".join(RANDOM.choice(LETTERS, int(length))) for length in RANDOM.integers(0, 40, 60)
]
WHOLE = [0, 1, -1, 2**31 - 1, -(2**31), *RANDOM.integers(-(2**31), 2**31, len(TEXTS) - 5).tolist()]
LONG = [0, 1, -1, 2**63 - 1, -(2**63), *RANDOM.integers(-(2**63), 2**63 - 1, len(TEXTS) - 5).tolist()]
DAYS = [date(1970, 1, 1), date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31)] + [
    date.fromordinal(int(day)) for day in RANDOM.integers(1, 3_000_000, len(TEXTS) - 4)
]
ROWS = pa.table(
    {
        "i": pa.array(WHOLE, pa.int32()),
        "b": pa.array(LONG, pa.int64()),
        "d": pa.array(DAYS, pa.date32()),
        "s": TEXTS,
        "t": TEXTS[::-1],
    }
)
COLUMNS = "i INT, b BIGINT, d DATE, s STRING, t STRING"
TYPES = {"i": "INT", "b": "BIGINT", "d": "DATE"}
MANY = (50_000, 1_000_000)


def table_schema(*keys: str, columns: str = COLUMNS, **options: str) -> TableSchema:
    spelled = {"bucket": "7", **{name.replace("_", "-"): value for name, value in options.items()}}
    return new_table_schema(parse_columns(columns), primary_keys=keys, options=spelled, time_millis=0)


@pytest.mark.parametrize(
    "keys", [("i",), ("b",), ("d",), ("s",), ("s", "t"), ("d", "s", "b", "t", "i"), ("b", "i"), ("t", "d")]
)
@pytest.mark.parametrize("count", [2, 7, 1024])
def test_keys_of_numbers_dates_and_texts(spark: SparkSession, keys: tuple[str, ...], count: int) -> None:
    schema = table_schema(*keys, bucket=str(count))
    df = spark.createDataFrame(ROWS)
    native = jvm_bucket(df.schema, schema)
    assert native is not None

    found = [row.bucket for row in df.select(native.alias("bucket")).collect()]

    expected = bucket_of(ROWS.cast(schema.arrow_schema).combine_chunks().to_batches()[0], schema)
    assert found == expected.tolist()


@pytest.mark.parametrize("many", thinned(MANY))
@pytest.mark.parametrize("keys", [("b",), ("i",), ("d",), ("b", "d", "i")])
def test_many_random_keys(spark: SparkSession, keys: tuple[str, ...], many: int) -> None:
    columns = {
        "i": pa.array(RANDOM.integers(-(2**31), 2**31, many), pa.int32()),
        "b": pa.array(RANDOM.integers(-(2**63), 2**63 - 1, many), pa.int64()),
        "d": pa.array(RANDOM.integers(-700_000, 2_900_000, many), pa.int32()).cast(pa.date32()),
    }
    rows = pa.table({name: columns[name] for name in keys})
    schema = table_schema(*keys, columns=", ".join(f"{name} {TYPES[name]}" for name in keys), bucket="1024")
    df = spark.createDataFrame(rows)
    native = jvm_bucket(df.schema, schema)
    assert native is not None

    found = df.select(native.alias("bucket")).toArrow().column("bucket").to_numpy()

    expected = bucket_of(rows.cast(schema.arrow_schema).combine_chunks().to_batches()[0], schema)
    assert np.array_equal(found, expected)


def test_what_spark_can_not_tell_the_library_does(spark: SparkSession) -> None:
    schema = table_schema("n", columns="n DECIMAL(12, 2), s STRING")
    df = spark.sql("SELECT CAST(id AS DECIMAL(12, 2)) n, 'x' s FROM range(50)")
    assert jvm_bucket(df.schema, schema) is None

    asked, told = (
        [row.bucket for row in rows.select(column.alias("bucket")).collect()]
        for rows, column in (with_bucket(df, schema), with_python_bucket(df, schema))
    )

    assert asked == told
    assert len(set(told)) > 1


@pytest.mark.parametrize("ddl", ["b int, s string", "b string, s string", "s string"])
def test_rows_of_other_types_than_the_tables_are_not_guessed_at(spark: SparkSession, ddl: str) -> None:
    """The write itself checks whether these types fit."""
    assert jvm_bucket(spark.createDataFrame([], ddl).schema, table_schema("b")) is None


def test_a_null_goes_to_some_bucket_where_the_write_refuses_it_by_name(spark: SparkSession) -> None:
    df = spark.createDataFrame([(None, None)], "b long, s string")
    native = jvm_bucket(df.schema, table_schema("b", "s"))
    assert native is not None

    (row,) = df.select(native.alias("bucket")).collect()

    assert 0 <= row.bucket < 7
