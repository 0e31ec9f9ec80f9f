"""A form can choose only Spark masters and settings that can neither run code nor disclose secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dynamic_table.hook import DynamicTableHook
from dynamic_table.operators.engine_operator import EngineOperator
from dynamic_table.operators.run_sql import SqlOperator
from dynamic_table.policies.spark_settings import SAFE_KEYS, checked_master, checked_spark_conf
from dynamic_table.sinks.sink_settings import checked_source
from storage_lib.errors import InvalidInputError
from storage_lib.spark.stream.sink.sink_spec import SinkSource, SinkSpec

CLUSTER = "spark://ours:7077"


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> DynamicTableHook:
    """Return the hook of a connection that names a cluster."""
    extra = {"warehouse": "/tables", "spark_master": CLUSTER}
    monkeypatch.setenv("AIRFLOW_CONN_DYNAMIC_TABLE_DEFAULT", json.dumps({"conn_type": "dynamic_table", "extra": extra}))
    return DynamicTableHook()


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2,4]", "local[*, 3]", CLUSTER])
def test_local_masters_and_the_connections_are_allowed(hook: DynamicTableHook, master: str) -> None:
    assert checked_master(master, hook) == master


def test_no_master_is_the_connections(hook: DynamicTableHook) -> None:
    assert checked_master(None, hook) == checked_master("None", hook) == CLUSTER


@pytest.mark.parametrize(
    "master",
    ["spark://elsewhere:7077", "k8s://https://elsewhere", "yarn", "local-cluster[1,1,1024]", "localhost", "local[2]x"],
)
def test_another_master_is_refused_until_an_administrator_lists_it(
    hook: DynamicTableHook, master: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidInputError, match=r"is not allowed.*\[dynamic_table\] spark_masters"):
        checked_master(master, hook)
    monkeypatch.setenv("AIRFLOW__DYNAMIC_TABLE__SPARK_MASTERS", f"x,{master}")

    assert checked_master(master, hook) == master
    with pytest.raises(InvalidInputError, match="is not allowed"):
        checked_master("local", hook)


@pytest.mark.parametrize(
    "key",
    [
        "spark.driver.extraJavaOptions",
        "spark.driver.extraClassPath",
        "spark.jars",
        "spark.jars.packages",
        "spark.submit.pyFiles",
        "spark.plugins",
        "spark.extraListeners",
        "spark.sql.extensions",
        "spark.sql.catalog.mine",
        "spark.python.daemon.module",
        "spark.pyspark.python",
        "spark.executorEnv.LD_PRELOAD",
        "spark.hadoop.fs.defaultFS",
        "spark.driver.host",
        "spark.ui.enabled",
        "spark.authenticate",
        "spark.redaction.regex",
    ],
)
def test_a_setting_that_could_run_code_is_refused_until_an_administrator_lists_it(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidInputError, match=rf"{key}.*\[dynamic_table\] spark_conf_keys"):
        checked_spark_conf({key: "x y"})
    monkeypatch.setenv("AIRFLOW__DYNAMIC_TABLE__SPARK_CONF_KEYS", f"spark.other {key[:-1]}*")

    assert checked_spark_conf({key: "x y"}) == {key: "x y"}


def test_sizes_and_switches_are_allowed_but_no_second_argument_in_them() -> None:
    given: dict[str, Any] = {"spark.executor.memory": "700m", "spark.sql.shuffle.partitions": 1}
    assert checked_spark_conf(given) == {"spark.executor.memory": "700m", "spark.sql.shuffle.partitions": "1"}
    for text in ("1g -XX:OnOutOfMemoryError=touch", "1g\n-x", "$(touch x)", "'", ""):
        with pytest.raises(InvalidInputError, match="it has to be a number"):
            checked_spark_conf({"spark.driver.memory": text})


def test_no_safe_setting_names_code_a_path_or_an_address() -> None:
    words = ("class", "jar", "path", "opts", "options", "plugin", "listener", "host", "address", "port", "env", "uri")
    assert [key for key in SAFE_KEYS if any(word in key.lower() for word in words)] == []


@pytest.mark.parametrize("given", [{"master": "spark://elsewhere:7077"}, {"spark_conf": {"spark.jars": "x.jar"}}])
def test_the_operators_that_start_spark_ask_before_they_do(hook: DynamicTableHook, given: dict[str, Any]) -> None:
    with (
        pytest.raises(InvalidInputError, match="allowed"),
        EngineOperator(task_id="engine", table="db.t", **given).spark(),
    ):
        pass
    sql = SqlOperator(task_id="sql", sql="SELECT 1", **given)
    with pytest.raises(InvalidInputError, match="allowed"), sql._session():
        pass


@pytest.mark.parametrize(
    "key",
    [
        "log.kafka.bootstrap.servers",
        "kafka.bootstrap.servers",
        "log.properties.bootstrap.servers",
        "log.kafka.security.protocol",
        "kafka.sasl.mechanism",
        "log.kafka.ssl.check.hostname",
        "log.schema-registry.url",
    ],
)
def test_the_connections_credentials_go_to_no_servers_that_a_form_names(key: str) -> None:
    def spec(secret: dict[str, str]) -> SinkSpec:
        source = SinkSource(kind="debezium_json", name="changes", options={key: "elsewhere:9092"})
        return SinkSpec(
            warehouse="/w", table="db.t", source=source, checkpoint_location="/c", heartbeat_path="/h",
            secret_options=secret,
        )  # fmt: skip

    with pytest.raises(InvalidInputError, match=f"{key}.*credentials"):
        spec({"log.kafka.sasl.plain.password": "DYNAMIC_TABLE_SECRET_0"})
    assert spec({"s3.secret-key": "DYNAMIC_TABLE_SECRET_0"}).source.options == {key: "elsewhere:9092"}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            {"kind": "dynamic_table", "options": {"log.scna": "latest"}},
            r"unknown option 'log\.scna'; did you mean 'log\.scan'",
        ),
        ({"kind": "dynamic_table", "options": {"bucket": "3"}}, "unknown option 'bucket'; it is an option of tables"),
        (
            {"kind": "dynamic_table", "options": {"scan.normalize.state-directory": "/anywhere"}},
            "keeps its state next to its checkpoint",
        ),
    ],
)
def test_an_option_of_a_source_that_nothing_heeds_or_that_names_a_directory_is_refused(
    source: dict[str, object], said: str
) -> None:
    with pytest.raises(InvalidInputError, match=said):
        SinkSpec(
            warehouse="/w", table="db.t", source=checked_source({"name": "db.s", **source}),
            checkpoint_location="/c", heartbeat_path="/h",
        )  # fmt: skip
