"""Conversion between a table's schema and Spark's."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import types as spark

from storage_lib.errors import InvalidInputError
from storage_lib.schema.table_schema import new_table_schema
from storage_lib.spark.types.spark_schema import (
    arrow_schema_of,
    check_read_schema,
    check_write_schema,
    conform,
    struct_of,
)
from storage_lib.spark.versions.spark_feature import SparkFeature
from tests.support.schemas import schema_of
from tests.support.spark_features import needs_spark

COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("flag", pa.bool_()),
        ("tiny", pa.int8()),
        ("small", pa.int16()),
        ("number", pa.int32()),
        ("real", pa.float32()),
        ("double", pa.float64()),
        ("day", pa.date32()),
        ("hour", pa.time32("ms")),
        ("text", pa.string()),
        ("bytes", pa.binary()),
        ("amount", pa.decimal128(12, 3)),
        ("local_ms", pa.timestamp("ms")),
        ("local", pa.timestamp("us")),
        ("local_ns", pa.timestamp("ns")),
        ("instant", pa.timestamp("us", "UTC")),
    ]
)
SCHEMA = new_table_schema(
    COLUMNS, primary_keys=("id",), partition_keys=(), options={"bucket": "1"}, comment=None, time_millis=0
)


@needs_spark(SparkFeature.TIME)
def test_every_type_has_a_spark_type_that_its_batches_fit() -> None:
    struct = struct_of(SCHEMA)

    assert struct.simpleString() == (
        "struct<id:bigint,flag:boolean,tiny:tinyint,small:smallint,number:int,real:float,double:double,day:date,"
        "hour:time(6),text:string,bytes:binary,amount:decimal(12,3),local_ms:timestamp_ntz,local:timestamp_ntz,"
        "local_ns:timestamp_ntz,instant:timestamp>"
    )
    assert not struct["id"].nullable
    rows = pa.RecordBatch.from_pylist([{"id": 1, "local_ms": datetime(2024, 1, 1)}], schema=SCHEMA.arrow_schema)  # noqa: DTZ001  local
    assert conform(rows, arrow_schema_of(struct), "db.t").schema.equals(arrow_schema_of(struct))


def test_nested_types_have_spark_types_that_their_batches_fit() -> None:
    columns = "id INT, a ARRAY<TIMESTAMP(3)>, m MAP<STRING, INT>, s MULTISET<STRING>, r ROW<x INT, y DATE>"
    schema = schema_of(columns, key="id")
    struct = struct_of(schema)

    assert struct.simpleString() == (
        "struct<id:int,a:array<timestamp_ntz>,m:map<string,int>,s:map<string,int>,r:struct<x:int,y:date>>"
    )
    row = {"id": 1, "a": [datetime(2024, 1, 1), None], "m": [("k", None)], "s": None, "r": {"x": 1, "y": None}}  # noqa: DTZ001  local
    rows = pa.RecordBatch.from_pylist([row, {"id": 2}], schema=schema.arrow_schema)
    for_spark = conform(rows, arrow_schema_of(struct), "db.t")
    assert for_spark.schema.equals(arrow_schema_of(struct))
    assert for_spark.to_pylist() == rows.to_pylist()
    check_write_schema("db.t", schema, struct, "_row_kind")


def test_columns_come_in_the_order_asked_for_and_the_row_kind_last() -> None:
    struct = struct_of(SCHEMA, ["text", "id"], row_kind_column="_row_kind")

    assert struct.fieldNames() == ["text", "id", "_row_kind"]


def test_an_unknown_column_is_refused_by_name() -> None:
    with pytest.raises(InvalidInputError, match="no column 'nothing'"):
        struct_of(SCHEMA, ["nothing"])


def test_a_column_that_is_asked_for_twice_is_refused() -> None:
    twice = spark.StructType([*struct_of(SCHEMA, ["id"]).fields] * 2)

    with pytest.raises(InvalidInputError, match="'id' is requested twice"):
        struct_of(SCHEMA, ["id", "id"])
    with pytest.raises(InvalidInputError, match="'id' is requested twice"):
        check_read_schema("db.t", SCHEMA, twice, None)


def test_a_nanosecond_that_spark_can_not_hold_is_refused_and_not_rounded() -> None:
    wanted = arrow_schema_of(struct_of(SCHEMA, ["local_ns"]))
    whole = pa.record_batch({"local_ns": pa.array([1_000], pa.timestamp("ns"))})
    fraction = pa.record_batch({"local_ns": pa.array([1_001], pa.timestamp("ns"))})

    assert conform(whole, wanted, "db.t").column(0).cast(pa.int64()).to_pylist() == [1]
    with pytest.raises(InvalidInputError, match="local_ns"):
        conform(fraction, wanted, "db.t")


def test_a_read_schema_has_to_be_a_cut_of_the_table() -> None:
    check_read_schema("db.t", SCHEMA, struct_of(SCHEMA, ["id", "text"]), None)
    check_read_schema("db.t", SCHEMA, struct_of(SCHEMA, ["id"], row_kind_column="_row_kind"), "_row_kind")
    wrong_type = spark.StructType([spark.StructField("id", spark.StringType())])
    unknown = spark.StructType([spark.StructField("ids", spark.LongType())])

    with pytest.raises(InvalidInputError, match="'id' reads as bigint"):
        check_read_schema("db.t", SCHEMA, wrong_type, None)
    with pytest.raises(InvalidInputError, match="no column 'ids'"):
        check_read_schema("db.t", SCHEMA, unknown, None)


def test_a_stream_read_without_the_row_kind_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="_row_kind STRING"):
        check_read_schema("db.t", SCHEMA, struct_of(SCHEMA, ["id"]), "_row_kind")
    number = spark.StructType([spark.StructField("_row_kind", spark.IntegerType())])
    with pytest.raises(InvalidInputError, match="_row_kind STRING"):
        check_read_schema("db.t", SCHEMA, number, "_row_kind")


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ([("id", spark.LongType()), ("nothing", spark.LongType())], "no column 'nothing'"),
        ([("id", spark.StringType())], "column 'id' is BIGINT"),
        ([("text", spark.StringType())], "lacks column 'id'"),
        ([("id", spark.ArrayType(spark.LongType()))], "column 'id' is BIGINT"),
        ([("id", spark.YearMonthIntervalType())], "Cast the column"),
    ],
)
def test_a_data_frame_that_does_not_fit_is_refused(columns: list[tuple[str, spark.DataType]], complaint: str) -> None:
    struct = spark.StructType([spark.StructField(name, of) for name, of in columns])

    with pytest.raises(InvalidInputError, match=complaint):
        check_write_schema("db.t", SCHEMA, struct, "_row_kind")


def test_spark_hands_timestamps_over_in_any_zone_name() -> None:
    wanted = arrow_schema_of(struct_of(SCHEMA, ["instant"]))
    moment = datetime(2024, 5, 14, 12, tzinfo=UTC)
    batch = pa.record_batch({"instant": pa.array([moment], pa.timestamp("us", "Etc/UTC"))})

    assert conform(batch, wanted, "db.t").column(0).to_pylist() == [moment]
