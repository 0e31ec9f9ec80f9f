"""Spark's filters as predicates of this library: exact, or left to Spark."""

from __future__ import annotations

from datetime import time
from decimal import Decimal

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")


from storage_lib.schema.filter import predicate as ours
from storage_lib.schema.table_schema import new_table_schema
from storage_lib.spark.types.spark_filters import predicate_of, split_filters
from storage_lib.spark.versions import filter_classes as spark

SCHEMA = new_table_schema(
    pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("s", pa.string()),
            ("f", pa.float64()),
            ("g", pa.float32()),
            ("t", pa.time32("ms")),
            ("wide", pa.decimal128(38, 5)),
        ]
    ),
    primary_keys=("id",),
    partition_keys=(),
    options={"bucket": "1"},
    comment=None,
    time_millis=0,
)
ROWS = pa.record_batch(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "s": pa.array(["a", "ab", None, "b"]),
        "f": pa.array([1.0, float("nan"), None, -1.0]),
        "g": pa.array([1.0, float("nan"), None, -1.0], pa.float32()),
        "t": pa.array([1, 2, None, 3], pa.time32("ms")),
        "wide": pa.array([Decimal(1), Decimal(4).scaleb(25), None, Decimal(2)], pa.decimal128(38, 5)),
    }
)
ROUNDED = Decimal("39999999999999999999999999.99999") * 1
"""Result of Spark's conversion of a 31-digit literal for a Python source: 4E+25."""


@pytest.mark.parametrize(
    ("pushed", "passing"),
    [
        (spark.GreaterThan(("wide",), Decimal("1.50000")), [2, 4]),
        (spark.EqualTo(("id",), 2), [2]),
        (spark.GreaterThan(("id",), 2), [3, 4]),
        (spark.GreaterThanOrEqual(("id",), 2), [2, 3, 4]),
        (spark.LessThan(("id",), 2), [1]),
        (spark.LessThanOrEqual(("id",), 2), [1, 2]),
        (spark.In(("id",), (1, None, 4)), [1, 4]),
        (spark.IsNull(("s",)), [3]),
        (spark.IsNotNull(("s",)), [1, 2, 4]),
        (spark.IsNull(("f",)), [3]),
        (spark.StringStartsWith(("s",), "a"), [1, 2]),
        (spark.EqualNullSafe(("s",), None), [3]),
        (spark.EqualNullSafe(("s",), "b"), [4]),
        (spark.Not(spark.EqualTo(("s",), "a")), [2, 4]),
        (spark.Not(spark.GreaterThan(("id",), 2)), [1, 2]),
        (spark.Not(spark.LessThanOrEqual(("id",), 2)), [3, 4]),
        (spark.Not(spark.IsNull(("s",))), [1, 2, 4]),
        (spark.Not(spark.IsNotNull(("s",))), [3]),
    ],
)
def test_a_pushed_filter_lets_exactly_the_rows_of_sparks_semantics_pass(
    pushed: spark.Filter, passing: list[int]
) -> None:
    predicate = predicate_of(pushed, SCHEMA)

    assert predicate is not None
    assert ROWS.filter(predicate.mask(ROWS)).column("id").to_pylist() == passing


@pytest.mark.parametrize(
    "pushed",
    [
        spark.GreaterThan(("f",), 0.0),
        spark.EqualTo(("f",), 1.0),
        spark.GreaterThan(("g",), 0.0),
        spark.EqualTo(("t",), time(0, 0, 0, 1000)),
        spark.EqualTo(("id",), None),
        spark.StringEndsWith(("s",), "b"),
        spark.StringContains(("s",), "b"),
        spark.Not(spark.In(("id",), (1, None))),
        spark.Not(spark.EqualNullSafe(("s",), "a")),
        spark.In(("id",), (None,)),
        spark.EqualTo(("s", "inner"), 1),
        spark.EqualTo(("unknown",), 1),
        spark.EqualTo(("wide",), ROUNDED),
        spark.In(("wide",), (Decimal(1), ROUNDED)),
        spark.Not(spark.LessThan(("wide",), ROUNDED)),
    ],
)
def test_what_can_not_be_said_exactly_stays_with_spark(pushed: spark.Filter) -> None:
    assert predicate_of(pushed, SCHEMA) is None


def test_filters_are_joined_and_the_rest_is_handed_back() -> None:
    left = spark.StringContains(("s",), "b")

    predicate, rest = split_filters([spark.GreaterThan(("id",), 1), left, spark.IsNotNull(("s",))], SCHEMA)

    assert rest == [left]
    assert predicate is not None
    assert ROWS.filter(predicate.mask(ROWS)).column("id").to_pylist() == [2, 4]
    assert isinstance(predicate, ours.And)
