"""Opens catalogs from connections."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from dynamic_table.hook import DynamicTableHook
from dynamic_table.versions.airflow_feature import AirflowFeature
from dynamic_table.versions.sdk_exceptions import AirflowNotFoundException
from local_kafka import LocalKafka
from local_s3 import LocalS3
from storage_lib.catalog.sql.sql_catalog import SqlCatalog
from storage_lib.errors import InvalidInputError, NotFoundError


def test_options_and_secrets_come_from_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"warehouse": "/tables", "bootstrap_servers": "broker:9092", "options": {"bucket": 4}}
    connection = {"conn_type": "dynamic_table", "login": "ann", "password": "sesame", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(connection))

    hook = DynamicTableHook(dynamic_table_conn_id="lake")

    assert hook.warehouse == "/tables"
    assert hook.options == {
        "bucket": "4",
        "log.kafka.bootstrap.servers": "broker:9092",
        "log.kafka.sasl.plain.username": "ann",
        "log.kafka.sasl.plain.password": "sesame",
    }


def test_the_fields_of_the_form_are_options_of_the_catalog(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    extra = {
        "warehouse": str(tmp_path / "tables"),
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "catalog": "sql",
        "catalog_uri": f"sqlite:///{tmp_path}/catalog.db",
    }
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "dynamic_table", "extra": extra}))
    hook = DynamicTableHook(dynamic_table_conn_id="lake")

    assert hook.options == {
        "log.kafka.security.protocol": "SASL_SSL",
        "log.kafka.sasl.mechanism": "SCRAM-SHA-512",
        "metastore": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
    }
    assert isinstance(hook.get_conn(), SqlCatalog)


def test_what_the_options_say_wins_over_the_fields_of_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"bootstrap_servers": "field:9092", "options": {"log.kafka.bootstrap.servers": "option:9092"}}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "dynamic_table", "extra": extra}))

    assert DynamicTableHook(dynamic_table_conn_id="lake").options == {"log.kafka.bootstrap.servers": "option:9092"}


def test_a_connection_without_warehouse_says_what_to_add(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "dynamic_table"}))

    with pytest.raises(InvalidInputError, match=r"'lake'.*warehouse"):
        _ = DynamicTableHook(dynamic_table_conn_id="lake").warehouse


def test_the_connection_test_counts_the_tables(warehouse: Path) -> None:
    warehouse.mkdir()

    assert DynamicTableHook().test_connection() == (
        True,
        "The warehouse answers; it holds 0 table(s). No Kafka servers are named.",
    )


def test_a_warehouse_that_is_not_mounted_is_not_taken_for_one_without_tables(warehouse: Path) -> None:
    with pytest.raises(NotFoundError, match=f"directory {warehouse}.*mounted"):
        DynamicTableHook().list_tables()

    answers, said = DynamicTableHook().test_connection()

    assert (answers, str(warehouse) in said) == (False, True)


def test_a_store_without_tables_is_one_without_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"warehouse": "s3://bucket/tables"}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "dynamic_table", "extra": extra}))
    monkeypatch.setattr(DynamicTableHook, "get_conn", lambda _: SimpleNamespace(list_tables=lambda _database: []))

    assert DynamicTableHook(dynamic_table_conn_id="lake").list_tables() == []


def test_an_extra_that_is_no_object_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "dynamic_table", "extra": "[1]"}))

    if not AirflowFeature.NAMES_OF_THE_SDK.is_here:
        with pytest.raises(AirflowNotFoundException, match="lake"):  # Airflow itself refuses it
            DynamicTableHook(dynamic_table_conn_id="lake").test_connection()
        return

    answers, said = DynamicTableHook(dynamic_table_conn_id="lake").test_connection()

    assert (answers, "not an object" in said) == (False, True)


def test_the_connection_test_tells_why_the_warehouse_does_not_answer(warehouse: Path) -> None:
    warehouse.touch()

    answers, said = DynamicTableHook().test_connection()

    assert not answers
    assert str(warehouse) in said


@pytest.mark.usefixtures("warehouse")
def test_the_connection_test_tells_what_the_system_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_hook: DynamicTableHook) -> None:
        raise PermissionError(13, "not yours")

    monkeypatch.setattr(DynamicTableHook, "get_conn", refuse)

    assert DynamicTableHook().test_connection() == (False, "[Errno 13] not yours")


@pytest.mark.s3
@pytest.mark.integration
def test_a_connection_may_name_a_warehouse_in_s3(s3: LocalS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"warehouse": f"s3://lake{tmp_path}", "secret_options": s3.options}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "dynamic_table", "extra": extra}))
    hook = DynamicTableHook(dynamic_table_conn_id="lake")
    hook.get_conn().create_table("db.t", pa.schema([("id", pa.int64())]), primary_key=["id"])

    assert hook.test_connection() == (
        True,
        "The warehouse answers; it holds 1 table(s). No Kafka servers are named.",
    )
    hook.load_table("db.t").append(pa.table({"id": [1]}))
    assert hook.load_table("db.t").to_arrow().num_rows == 1

    extra["warehouse"] = "s3://no-such-bucket/tables"
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "dynamic_table", "extra": extra}))
    answers, said = hook.test_connection()
    assert not answers
    assert "there is no such bucket" in said


@pytest.mark.kafka
@pytest.mark.integration
def test_the_connection_test_asks_kafka_too(
    warehouse: Path, kafka: LocalKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse.mkdir()
    extra = {"warehouse": str(warehouse), "bootstrap_servers": kafka.bootstrap_servers}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "dynamic_table", "extra": extra}))

    answers, said = DynamicTableHook(dynamic_table_conn_id="lake").test_connection()

    assert (answers, said.endswith("Kafka answers with 1 broker(s).")) == (True, True)


def test_the_connection_test_tells_that_kafka_does_not_answer(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from storage_lib.log_store.kafka import kafka_check

    warehouse.mkdir()
    monkeypatch.setattr(kafka_check.count_brokers, "__kwdefaults__", {"limit_ms": 300})
    extra = {"warehouse": str(warehouse), "bootstrap_servers": "127.0.0.1:9"}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "dynamic_table", "extra": extra}))

    answers, said = DynamicTableHook(dynamic_table_conn_id="lake").test_connection()

    assert not answers
    assert "127.0.0.1:9" in said


@pytest.mark.parametrize("given", ['{"bucket": 4}', {"bucket": "4"}])
def test_options_may_come_as_the_text_of_airflows_form(given: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "dynamic_table", "extra": {"options": given}}))

    assert DynamicTableHook(dynamic_table_conn_id="lake").options == {"bucket": "4"}


@pytest.mark.parametrize("given", ["bucket=4", "[1]", [1]])
def test_options_that_are_no_object_are_refused(given: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "dynamic_table", "extra": {"options": given}}))

    with pytest.raises(InvalidInputError, match=r"'lake'.*JSON object"):
        _ = DynamicTableHook(dynamic_table_conn_id="lake").options
