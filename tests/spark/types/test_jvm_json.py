"""Records that Spark's JVM encodes decode to the same rows as those of this library, for every type."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import functions as sql

from storage_lib import InvalidInputError
from storage_lib.log_store.codec.debezium_json import DebeziumJson
from storage_lib.schema.table_schema import TableSchema, new_table_schema
from storage_lib.schema.types.type_spelling import parse_columns
from storage_lib.spark.types.jvm_json import JvmJson
from storage_lib.spark.types.spark_errors import storage_error_in
from storage_lib.spark.types.spark_schema import struct_of
from storage_lib.spark.versions.spark_feature import SparkFeature
from tests.support.every_type import same_rows
from tests.support.spark_features import needs_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

ZONE = "spark.sql.session.timeZone"
TEXTS = ["", "a", "ÄÖ漢😀", 'quo"te', "back\\slash", "NaN", '{"a":null}', "\u2028", "true"]
WIDE = Context(prec=60)


def local(
    year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0, micros: int = 0
) -> datetime:
    return datetime(year, month, day, hour, minute, second, micros, tzinfo=UTC).replace(tzinfo=None)


MICROS = [
    local(1, 1, 1),
    local(1969, 12, 31, 23, 59, 59, 999_000),
    local(1970, 1, 1),
    local(2024, 3, 10, 2, 30),  # does not exist in New York
    local(2024, 11, 3, 1, 30, 0, 1_000),  # exists twice in New York
    local(9999, 12, 31, 23, 59, 59, 999_000),
]
NANOS = [local(1677, 9, 22), *MICROS[1:5], local(2262, 4, 10, 1, 2, 3, 456_789)]
FINE = [*MICROS, local(2024, 5, 14, 12, 0, 0, 1), local(1, 1, 1, 0, 0, 0, 999_999)]


def decimals(precision: int, scale: int) -> list[Decimal]:
    most = 10**precision - 1
    units = [0, 1, -1, 127, 128, -128, -129, 255, -256, 2**31, -(2**63), 2**64, -(2**96), most, -most, most // 7]
    return [WIDE.scaleb(Decimal(unit), -scale) for unit in units if abs(unit) <= most]


VALUES: dict[str, list[Any]] = {
    "BOOLEAN": [True, False],
    "TINYINT": [0, 127, -128],
    "SMALLINT": [0, 32767, -32768],
    "INT": [0, 2**31 - 1, -(2**31)],
    "BIGINT": [0, 2**63 - 1, -(2**63)],
    "FLOAT": [0.0, -0.0, 1.5, 3.4028234663852886e38, 1.401298464324817e-45, float("inf"), float("-inf"), float("nan")],
    "DOUBLE": [0.0, -0.0, 0.1, 1.7976931348623157e308, 5e-324, 1e22, float("inf"), float("-inf"), float("nan")],
    "DATE": [date(1, 1, 1), date(1582, 10, 15), date(1970, 1, 1), date(9999, 12, 31)],
    "CHAR(3)": ["", "äöü", "abc"],
    "VARCHAR(20)": TEXTS,
    "STRING": TEXTS,
    "BINARY(3)": [b"", b"\x00\xff\x7f"],
    "BYTES": [b"", b"\x00", b"\xff" * 100],
    "DECIMAL(1, 0)": decimals(1, 0),
    "DECIMAL(10, 2)": decimals(10, 2),
    "DECIMAL(18, 18)": decimals(18, 18),
    "DECIMAL(19, 0)": decimals(19, 0),
    "DECIMAL(38, 5)": decimals(38, 5),
    "DECIMAL(38, 38)": decimals(38, 38),
    "TIMESTAMP(0)": MICROS,
    "TIMESTAMP(3)": MICROS,
    "TIMESTAMP(6)": FINE,
    "TIMESTAMP(9)": NANOS,
    "TIMESTAMP_LTZ(3)": MICROS,
    "TIMESTAMP_LTZ(6)": FINE,
    "TIMESTAMP_LTZ(9)": NANOS,
}
NESTED: dict[str, list[Any]] = {
    "ARRAY<STRING>": [[], ["a", None, 'x"'], [""]],
    "ARRAY<DECIMAL(38, 5)>": [[Decimal("-1.50000"), None], decimals(38, 5)],
    "ARRAY<ARRAY<TIMESTAMP(3)>>": [[[local(2024, 3, 10, 2, 30)], None, []]],
    "MAP<STRING, INT>": [{}, {"a": 1}, {'k"ey': None}, {"": 3}],
    "MAP<STRING, ARRAY<DATE>>": [{"a": [date(1, 1, 1), None]}],
    "MULTISET<STRING>": [{"a": 2}],
    "ROW<a INT, b STRING, c ROW<d DECIMAL(10, 2), e BYTES>>": [
        {"a": 1, "b": None, "c": {"d": Decimal("1.25"), "e": b"\xff"}},
        {"a": None, "b": "x", "c": None},
    ],
    "ARRAY<ROW<t TIMESTAMP_LTZ(6), f DOUBLE>>": [[{"t": datetime(2024, 11, 3, 5, 30, tzinfo=UTC), "f": 0.25}, None]],
}
FLOATS = ("FLOAT", "DOUBLE")


@pytest.fixture(params=["UTC", "America/New_York"])
def _session_zone(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get(ZONE)
    spark.conf.set(ZONE, request.param)
    yield
    spark.conf.set(ZONE, str(before))


def schema_of(columns: str, *keys: str) -> TableSchema:
    return new_table_schema(parse_columns(columns), primary_keys=keys, options={"bucket": "1"}, time_millis=0)


def frame(spark: SparkSession, rows: pa.RecordBatch, schema: TableSchema) -> DataFrame:
    """Return rows of scalars with Spark's types for the table's columns."""
    micros = [
        column.cast(pa.timestamp("us", column.type.tz)) if pa.types.is_timestamp(column.type) else column
        for column in rows.columns
    ]
    return spark.createDataFrame(pa.Table.from_arrays(micros, names=rows.schema.names), struct_of(schema))


def native_records(df: DataFrame, schema: TableSchema, kind: str | None = None) -> tuple[pa.Array, pa.Array]:
    encoder = JvmJson("db.t", schema)
    found = df.select(encoder.key().alias("k"), encoder.value(kind).alias("v")).toArrow().combine_chunks()
    keys, values = (pa.array([text.encode() for text in found.column(name).to_pylist()], pa.binary()) for name in "kv")
    return keys, values


@pytest.mark.usefixtures("_session_zone")
@pytest.mark.parametrize("spelled", [*VALUES, *NESTED])
def test_a_column_is_encoded_as_by_this_library(spark: SparkSession, spelled: str) -> None:
    schema = schema_of(f"id BIGINT NOT NULL, v {spelled}", "id")
    values = [*(VALUES[spelled] if spelled in VALUES else NESTED[spelled]), None]
    rows = pa.RecordBatch.from_arrays(
        [pa.array(range(len(values)), pa.int64()), pa.array(values, schema.field("v").type.arrow)],
        schema=schema.arrow_schema,
    )
    codec = DebeziumJson(schema, with_update_before=False)
    (ours,) = codec.encode(rows, pa.array([0] * len(rows), pa.int8()))

    nested = spark.createDataFrame(list(enumerate(values)), struct_of(schema)) if spelled in NESTED else None
    keys, records = native_records(nested or frame(spark, rows, schema), schema)

    assert same_rows(codec.decode(records).rows, rows)
    assert keys.to_pylist() == ours.keys.to_pylist()
    if not any(word in spelled for word in FLOATS):
        assert records.to_pylist() == ours.values.to_pylist()


@needs_spark(SparkFeature.REAL_TIME)  # which alone encodes in the JVM
@pytest.mark.parametrize("precision", [0, 3, 6])
def test_a_time_is_encoded_as_by_this_library(spark: SparkSession, precision: int) -> None:
    schema = schema_of(f"id BIGINT NOT NULL, v TIME({precision})", "id")
    times = [time(0), time(23, 59, 59, 999_000), time(1, 2, 3, 4_000), None]
    rows = pa.RecordBatch.from_arrays(
        [pa.array(range(4), pa.int64()), pa.array(times, pa.time32("ms"))], schema=schema.arrow_schema
    )
    texts = [(row, None if each is None else str(each)) for row, each in enumerate(times)]
    df = spark.createDataFrame(texts, "id long, t string").selectExpr("id", "CAST(t AS TIME(6)) AS v")

    _, records = native_records(df, schema)

    (ours,) = DebeziumJson(schema, with_update_before=False).encode(rows, pa.array([0] * 4, pa.int8()))
    assert records.to_pylist() == ours.values.to_pylist()


@pytest.mark.parametrize(
    "key", ["BOOLEAN", "SMALLINT", "DATE", "STRING", "BYTES", "DECIMAL(38, 5)", "TIMESTAMP(3)", "TIMESTAMP_LTZ(6)"]
)
def test_a_key_is_encoded_as_by_this_library(spark: SparkSession, key: str) -> None:
    schema = schema_of(f"v INT, k {key} NOT NULL, `p.q` INT NOT NULL", "p.q", "k")
    values = VALUES[key]
    arrays = [
        pa.nulls(len(values), pa.int32()),
        pa.array(values, schema.field("k").type.arrow),
        pa.array([7] * len(values), pa.int32()),
    ]
    rows = pa.RecordBatch.from_arrays(arrays, schema=schema.arrow_schema)

    keys, records = native_records(frame(spark, rows, schema), schema)

    codec = DebeziumJson(schema, with_update_before=False)
    assert keys.to_pylist() == codec.keys(rows).to_pylist()
    assert same_rows(codec.decode(records).rows, rows)


def test_each_row_kind_is_the_operation_that_this_library_writes(spark: SparkSession) -> None:
    schema = schema_of("id BIGINT NOT NULL, v STRING", "id")
    codec = DebeziumJson(schema, with_update_before=False)
    rows = pa.RecordBatch.from_pydict({"id": [1, 2, 3], "v": ["a", "b", None]}, schema.arrow_schema)
    df = spark.createDataFrame([(1, "a", "+I"), (2, "b", "+U"), (3, None, "-D")], "id long, v string, _row_kind string")

    _, records = native_records(df, schema, "_row_kind")

    (ours,) = codec.encode(rows, pa.array([0, 2, 3], pa.int8()))
    assert records.to_pylist() == ours.values.to_pylist()
    assert codec.decode(records).kinds.to_pylist() == [0, 2, 3]


@pytest.mark.parametrize("name", ["Ünï cödé", 'quo"te', "back\\slash", "do$llar ${1}", "before", "op", "x.y", "tick`"])
def test_a_column_may_have_any_name(spark: SparkSession, name: str) -> None:
    schema = new_table_schema(
        [("id", parse_columns("id BIGINT")[0][1]), (name, parse_columns("v DECIMAL(10, 2)")[0][1])],
        primary_keys=("id",),
        options={"bucket": "1"},
        time_millis=0,
    )
    rows = pa.RecordBatch.from_arrays(
        [pa.array([1]), pa.array([Decimal("2.50")], pa.decimal128(10, 2))], schema=schema.arrow_schema
    )

    _, records = native_records(frame(spark, rows, schema), schema)

    (ours,) = DebeziumJson(schema, with_update_before=False).encode(rows, pa.array([0], pa.int8()))
    assert records.to_pylist() == ours.values.to_pylist()


@pytest.mark.parametrize(
    ("spelled", "value", "reason"),
    [
        ("STRING NOT NULL", "CAST(NULL AS STRING)", "is NOT NULL, and a row has no value"),
        ("VARCHAR(2)", "'abc'", "is VARCHAR(2), and a row has a longer value"),
        ("BINARY(2)", "X'010203'", "is BINARY(2), and a row has a longer value"),
        ("STRING", "CAST(X'C328' AS STRING)", "not UTF-8"),
        ("TIMESTAMP(3)", "TIMESTAMP_NTZ'2024-05-14 12:00:00.0001'", "stores milliseconds"),
        ("TIMESTAMP_LTZ(3)", "TIMESTAMP'2024-05-14 12:00:00.0001'", "stores milliseconds"),
        ("TIMESTAMP(9)", "TIMESTAMP_NTZ'1500-01-01 00:00:00'", "from 1677"),
        ("TIMESTAMP_LTZ(6)", "TIMESTAMP'+12024-05-14 12:00:00'", "years 1 to 9999"),
        ("DATE", "DATE'+12024-05-14'", "years 1 to 9999"),
        ("ARRAY<INT NOT NULL>", "ARRAY(1, NULL)", "'v.element' is NOT NULL"),
        ("ROW<a VARCHAR(1)>", "NAMED_STRUCT('a', 'xy')", "'v.a' is VARCHAR(1)"),
    ],
)
def test_a_row_that_this_library_refuses_fails_the_query(
    spark: SparkSession, spelled: str, value: str, reason: str
) -> None:
    schema = schema_of(f"id BIGINT NOT NULL, v {spelled}", "id")
    df = spark.range(1).select("id", sql.expr(value).alias("v"))

    with pytest.raises(Exception, match="storage_lib refused a row") as raised:
        native_records(df, schema)

    error = storage_error_in(str(raised.value))
    assert isinstance(error, InvalidInputError)
    assert reason in str(error)
    assert str(error).startswith("table db.t: column 'v")


@pytest.mark.parametrize("kind", ["-U", "x", None])
def test_an_unknown_row_kind_fails_the_query(spark: SparkSession, kind: str | None) -> None:
    schema = schema_of("id BIGINT NOT NULL, v STRING", "id")
    df = spark.createDataFrame([(1, "a", kind)], "id long, v string, _row_kind string")

    with pytest.raises(Exception, match="column '_row_kind' is not"):
        native_records(df, schema, "_row_kind")


@pytest.mark.parametrize("spelled", ["MAP<INT, STRING>", "MULTISET<DATE>", "VARIANT", "ROW<a MAP<BIGINT, INT>>"])
def test_a_type_that_spark_spells_otherwise_is_refused(spark: SparkSession, spelled: str) -> None:
    del spark  # columns can be made in a session only
    schema = schema_of(f"id BIGINT NOT NULL, v {spelled}", "id")

    with pytest.raises(InvalidInputError, match="write the table without real_time=True"):
        JvmJson("db.t", schema)


def test_an_unset_nested_column_and_an_empty_one_are_told_apart(spark: SparkSession) -> None:
    schema = schema_of("id BIGINT NOT NULL, a ARRAY<INT>, r ROW<x INT>", "id")
    df = spark.createDataFrame([(1, None, None), (2, [], (None,))], struct_of(schema))

    _, records = native_records(df, schema)

    rows = [json.loads(text)["after"] for text in records.to_pylist()]
    assert rows == [{"id": 1, "a": None, "r": None}, {"id": 2, "a": [], "r": {"x": None}}]
    assert pc.count(DebeziumJson(schema, with_update_before=False).decode(records).rows.column("r")).as_py() == 1
