"""The records of a real-time stream: columns, buckets, and tables and columns that are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from storage_lib import InvalidInputError
from storage_lib.log_store.kafka.kafka_log_settings import KafkaLogSettings
from storage_lib.schema.options.table_options import LogConsistency, LogFormat
from storage_lib.schema.placing.bucketing import bucket_of
from storage_lib.schema.placing.partition import too_long_value
from storage_lib.spark.stream.kafka_sink_options import sink_options
from storage_lib.spark.stream.real_time_log import records_of, refuse_table
from tests.support.orders_table import orders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = pytest.mark.spark


def values_of(records: Any) -> list[dict[str, Any]]:
    return [json.loads(row.value) for row in records.orderBy("key").collect()]


def test_each_record_is_in_the_bucket_that_the_files_have(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    table = make_table(columns={"id": "BIGINT", "v": "STRING"}, primary_key=("v",), bucket=5)
    df = spark.range(200).selectExpr("id", "concat('key ', id) AS v")

    found = {json.loads(row.key)["v"]: row.partition for row in records_of(df, table).collect()}

    rows = df.toArrow().cast(table.schema.arrow_schema).combine_chunks().to_batches()[0]
    assert found == dict(zip(rows.column("v").to_pylist(), bucket_of(rows, table.schema).tolist(), strict=True))
    assert len(set(found.values())) == 5


def test_columns_that_lack_are_null_or_have_their_default_and_numbers_are_widened(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    columns = {"id": "BIGINT", "a": "STRING", "b": "TIMESTAMP(3)", "c": "DECIMAL(10, 2)", "d": "DOUBLE"}
    table = make_table(
        columns=columns, bucket=1, fields__b__default_value="2024-03-10 02:30:00", fields__c__default_value="1.5"
    )
    df = spark.sql("SELECT CAST(7 AS SMALLINT) AS id, CAST(NULL AS DECIMAL(4, 1)) AS c, CAST(1.5 AS FLOAT) AS d")

    (value,) = values_of(records_of(df, table))

    assert value == {
        "before": None,
        "after": {"id": 7, "a": None, "b": 1_710_037_800_000, "c": "AJY=", "d": 1.5},
        "op": "c",
    }


@pytest.mark.parametrize(
    ("value", "fits"), [("ä" * 126, True), ("ä" * 127, False), ("/\x1f]^" * 21, True), ("\\" * 85, False)]
)
def test_a_partition_has_to_fit_into_a_directorys_name(
    spark: SparkSession, make_table: Callable[..., DynamicTable], value: str, *, fits: bool
) -> None:
    columns = {"id": "BIGINT", "p": "STRING"}
    table = make_table(columns=columns, primary_key=("id", "p"), partition_by=("p",), bucket=1)
    records = records_of(spark.createDataFrame([(1, value)], "id long, p string"), table)
    assert (too_long_value(table.schema.field("p"), pa.array([value])) is None) == fits

    if fits:
        assert values_of(records)[0]["after"]["p"] == value
    else:
        with pytest.raises(Exception, match="too long for a directory's name"):
            records.collect()


def test_deletions_are_left_out_if_the_table_ignores_them(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    table = make_table(bucket=1, ignore_delete="true")
    df = spark.createDataFrame(
        [(1, "a", 1, "+I"), (1, "a", 1, "-U"), (2, "b", 2, "+U"), (3, "c", 3, "-D")],
        "id long, v string, n int, _row_kind string",
    )

    assert [(value["op"], value["after"]["id"]) for value in values_of(records_of(df, table))] == [("c", 1), ("u", 2)]


@pytest.mark.parametrize(
    ("expression", "given"),
    [("CAST(id AS STRING)", "string"), ("CAST(id AS DECIMAL(20, 0))", "decimal"), ("CAST(id AS DOUBLE)", "double")],
)
def test_a_column_that_may_not_fit_is_refused(
    spark: SparkSession, make_table: Callable[..., DynamicTable], expression: str, given: str
) -> None:
    df = spark.range(1).selectExpr("id", f"{expression} AS n")

    with pytest.raises(InvalidInputError, match=rf"column 'n' is INT .*has {given}.*cast the column"):
        records_of(df, make_table(bucket=1))


def test_a_bucket_that_spark_can_not_compute_is_refused(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    table = make_table(columns={"id": "DECIMAL(10, 2)", "v": "STRING"}, bucket=3)

    with pytest.raises(InvalidInputError, match=r"bucket key \(id DECIMAL\(10, 2\).*Use a table with bucket=1"):
        records_of(spark.sql("SELECT CAST(1 AS DECIMAL(10, 2)) AS id"), table)


@pytest.mark.usefixtures("kafka")
def test_a_log_in_memory_or_in_avro_is_refused(make_table: Callable[..., DynamicTable]) -> None:
    with pytest.raises(InvalidInputError, match="its log is not in Kafka"):
        refuse_table(orders(None, **{"log.consistency": "eventual"}))

    table = make_table(log=True, log__consistency="eventual")
    options = SimpleNamespace(log_consistency=LogConsistency.EVENTUAL, log_format=LogFormat.DEBEZIUM_AVRO)
    in_avro: Any = SimpleNamespace(name="db.t", log=table.log, options=options, schema=table.schema)
    with pytest.raises(InvalidInputError, match=r"log\.format=debezium-avro.*Use a table with log\.format="):
        refuse_table(in_avro)


def settings(**options: str) -> KafkaLogSettings:
    dotted = {key.replace("_", "."): value for key, value in options.items()}
    return KafkaLogSettings(
        topic="t-log", table_uuid="uuid", client_options={"bootstrap.servers": "broker:9092", **dotted}
    )


def test_the_clients_options_are_said_in_javas_words() -> None:
    given = settings(
        security_protocol="SASL_SSL",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_username="ann",
        sasl_password='pa"ss\\word',  # noqa: S106  of nobody
        ssl_cafile="/etc/ca.pem",
        request_timeout_ms="20000",
        compression_type="zstd",
        replication_factor="3",
    )

    found = sink_options("db.t", given)

    assert found == {
        "topic": "t-log",
        "kafka.bootstrap.servers": "broker:9092",
        "kafka.acks": "all",
        "kafka.enable.idempotence": "true",
        "kafka.compression.type": "zstd",
        "kafka.max.request.size": str(32 << 20),
        "kafka.linger.ms": "5",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": (
            'org.apache.kafka.common.security.scram.ScramLoginModule required username="ann" '
            'password="pa\\"ss\\\\word";'
        ),
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": "/etc/ca.pem",
        "kafka.request.timeout.ms": "20000",
    }


@pytest.mark.parametrize(
    ("option", "value"), [("ssl_certfile", "/etc/cert.pem"), ("sasl_kerberos_service_name", "kafka")]
)
def test_a_client_option_that_java_can_not_be_given_is_refused(option: str, value: str) -> None:
    with pytest.raises(InvalidInputError, match=f"the option log.kafka.{option.replace('_', '.')}"):
        sink_options("db.t", settings(**{option: value}))
