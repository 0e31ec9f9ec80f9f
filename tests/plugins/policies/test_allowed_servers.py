"""Options of a form reach the connection's servers and those that an administrator lists, and no others."""

from __future__ import annotations

import json
import random
import socket
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dynamic_table.hook import DynamicTableHook
from dynamic_table.operators.ingest_topic import IngestOperator
from dynamic_table.operators.provision_table import ProvisionTableOperator
from dynamic_table.operators.stream_sink import StreamSinkOperator
from dynamic_table.policies.allowed_servers import (
    OPTIONS_OF_A_TOPIC,
    refuse_other_servers_of_form,
    refuse_table_options_of_form,
)
from dynamic_table.policies.options_of_forms import ALLOWED, CHECKED, REFUSED
from storage_lib import open_catalog
from storage_lib.errors import InvalidInputError, StorageError
from storage_lib.schema.options.paimon_options import PASSED_THROUGH, PREFIXES_PASSED_THROUGH, REFUSED_FEATURES
from storage_lib.schema.options.table_options import canonical_key, option_keys
from tests.support.deep_tests import thinned
from tests.support.task_context import task_context

BROKERS, REGISTRY = "log.kafka.bootstrap.servers", "log.schema-registry.url"
SHARES = 16
STATE_DIRECTORY = "scan.normalize.state-directory"
PATHS, ROOT = "data-file.external-paths", "file.root-path"


@pytest.fixture
def hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DynamicTableHook:
    """Return the hook of a connection with two brokers and a registry."""
    options = {BROKERS: "kafka:9092,kafka2:9092", REGISTRY: "https://registry/api", ROOT: "s3://files/tables"}
    extra = {"warehouse": str(tmp_path / "warehouse"), "options": options}
    monkeypatch.setenv("AIRFLOW_CONN_DYNAMIC_TABLE_DEFAULT", json.dumps({"conn_type": "dynamic_table", "extra": extra}))
    return DynamicTableHook()


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (BROKERS, "kafka:9092"),
        (BROKERS, "kafka2:9092, kafka:9092"),
        (REGISTRY, "https://registry/api"),
        (REGISTRY, "https://registry:443/other"),
        (ROOT, "s3://files/tables"),
        ("log.kafka.topic", "orders"),
        ("log.kafka.security.protocol", "SSL"),
        ("kafka.fetch.max.bytes", "1000"),
        ("log.schema-registry.timeout-seconds", "2.5"),
        ("bucket", "4"),
        ("fields.a.aggregate-function", "sum"),
        ("user.owner", "http://wiki/team"),
        ("parquet.page.size", "1024"),
        ("table-storage.bucket", "4"),
    ],
)
def test_an_option_that_reaches_the_connections_servers_or_none_is_taken(
    hook: DynamicTableHook, key: str, text: str
) -> None:
    refuse_other_servers_of_form({key: text}, hook)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (BROKERS, "kafka:9093"),
        (BROKERS, "kafka:9092,elsewhere:9092"),
        ("kafka.bootstrap.servers", "elsewhere:9092"),
        ("KAFKA.Bootstrap.Servers", "elsewhere:9092"),
        ("log.properties.bootstrap.servers", "elsewhere:9092"),
        (REGISTRY, "http://registry/api"),
        (REGISTRY, "https://registry:8443"),
        (REGISTRY, "https://registry@elsewhere/"),
        (REGISTRY, "https://registry\\@elsewhere/"),
        (REGISTRY, "https://registry.elsewhere/"),
        (REGISTRY, "https://registry,http://169.254.169.254/latest"),
        (REGISTRY, "registry"),
        (PATHS, "s3://elsewhere/t"),
        (PATHS, "file:///etc"),
        (ROOT, "s3://files/tables-of-others"),
        (ROOT, "s3://files/tables/../others"),
        ("log.kafka.sasl.kerberos.service.name", "x"),
        ("log.kafka.ssl.cafile", "/etc/shadow"),
        ("log.kafka.selector", "os.system"),
        ("log.schema-registry.ca-location", "/etc/shadow"),
        ("iceberg.uri", "thrift://elsewhere"),
        ("commit.callback.a.param", "x"),
        ("parquet.crypto.factory.class", "x"),
        ("path", "/etc"),
        ("materialized-table.definition-query", "SELECT reflect('java.lang.System', 'getenv', 'HOME') AS x FROM a.s"),
        ("materialized-table.definition-sources", "a.s"),
        ("data-file.prefix", "../../elsewhere/"),
        ("orc.key.provider", "elsewhere"),
        ("s3.endpoint", "http://elsewhere"),
        (STATE_DIRECTORY, "/etc"),
        ("Scan.Normalize.State-Directory", "/etc"),
        (f"table-storage.{STATE_DIRECTORY}", "/etc"),
        ("table-storage.table-storage.materialized-table.definition-query", "SELECT 1"),
    ],
)
def test_an_option_that_reaches_another_server_is_refused(hook: DynamicTableHook, key: str, text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"(neither the connection's|not allowed from a form)"):
        refuse_other_servers_of_form({key: text}, hook)


def test_every_option_of_tables_is_either_allowed_in_forms_or_refused() -> None:
    listed = (ALLOWED, CHECKED, REFUSED)
    others = {key for kinds in (PASSED_THROUGH, REFUSED_FEATURES) for keys in kinds.values() for key in keys}
    of_format = {"bucket-key", "bucket-function.type", "path", "type"}
    known = {*option_keys(), *others, *of_format, REGISTRY, STATE_DIRECTORY}

    assert known == {key for keys in listed for key in keys}
    assert len(known) == sum(map(len, listed))


@pytest.mark.parametrize("key", ["bucekt", "column.v", "iceberg", "table-storage.", "table-storage", "log", ""])
def test_an_option_that_nobody_knows_is_refused_with_the_nearest(hook: DynamicTableHook, key: str) -> None:
    with pytest.raises(InvalidInputError, match="unknown option"):
        refuse_other_servers_of_form({key: "4"}, hook)


def test_no_spelling_of_a_refused_option_passes_the_form_and_is_stored(hook: DynamicTableHook, tmp_path: Path) -> None:
    """Prefixes, older names and letter cases at random: what the form takes is stored as what the form looked at."""
    chance = random.Random(47)  # noqa: S311  repeatable
    assert hook.warehouse
    catalog = open_catalog(str(tmp_path / "tables"), {"log.system": "none"})
    reaching = {**dict.fromkeys(REFUSED, "x"), "column.v.expression": "reflect('a', 'b')", BROKERS: "elsewhere:9"}
    reaching |= {ROOT: str(tmp_path / "outside"), "log.properties.bootstrap.servers": "elsewhere:9"}
    parts = ("table-storage.", "table-storage.", "kafka.", "log.", "log.properties.", "Table-Storage.", "x.", "")
    for _ in range(120):
        key, text = chance.choice(sorted(reaching.items()))
        spelled = "".join(chance.choices(parts, k=chance.randint(0, 3))) + key
        spelled = spelled.upper() if chance.random() < 0.1 else spelled
        try:
            refuse_table_options_of_form("db.t", {spelled: text}, hook)
            table = catalog.create_table("db.t", {"id": "BIGINT"}, options={spelled: text})
        except InvalidInputError:
            continue
        assert not {canonical_key(each) for each in table.schema.options} & set(reaching), spelled
        assert all(canonical_key(each) == each for each in table.schema.options), spelled
        catalog.drop_table("db.t")


def test_an_administrator_lists_further_servers(hook: DynamicTableHook, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = "other:9092 https://other:8081, s3://lake/shared file:///data"
    monkeypatch.setenv("AIRFLOW__DYNAMIC_TABLE__SERVERS", listed)

    for key, text in (
        (BROKERS, "other:9092,kafka:9092"),
        (REGISTRY, "https://other:8081/path"),
        (PATHS, "s3://lake/shared/t, /data/t"),
    ):
        refuse_other_servers_of_form({key: text}, hook)
    for key, text in ((BROKERS, "other:9093"), (REGISTRY, "https://other"), (PATHS, "s3://lake/sharedby")):
        with pytest.raises(InvalidInputError, match="which an administrator sets"):
            refuse_other_servers_of_form({key: text}, hook)


def test_every_operator_whose_options_come_from_a_form_asks_first(hook: DynamicTableHook) -> None:
    assert hook.warehouse
    options = {BROKERS: "elsewhere:9092"}
    topic = {"kind": "debezium_json", "name": "c", "options": options}
    for task in (
        ProvisionTableOperator(task_id="a", table="db.t", columns={"id": "BIGINT"}, options=options),
        ProvisionTableOperator(
            task_id="b", table="db.t", ddl=f"CREATE TABLE db.t (id BIGINT) WITH ('{BROKERS}' = 'elsewhere:9092')"
        ),
        StreamSinkOperator(task_id="c", table="db.t", source=topic),
        IngestOperator(task_id="d", table="db.t", topic="c", options=options),
    ):
        act: Any = task.arguments if isinstance(task, StreamSinkOperator) else task.execute
        given = () if isinstance(task, StreamSinkOperator) else (task_context(task),)
        with pytest.raises(InvalidInputError, match="elsewhere:9092, which is neither"):
            act(*given)


def test_the_options_of_a_topic_are_those_that_its_reader_knows() -> None:
    from storage_lib.log_store.external import external_topic
    from storage_lib.spark.stream.sink import sink_spec

    known = {*external_topic._OWN, *sink_spec._OF_A_TABLE}
    # read_changelog sets the first itself, and a form names neither.
    internal = {external_topic.APPLIED_TO, STATE_DIRECTORY}

    assert known - set(option_keys()) - internal == OPTIONS_OF_A_TOPIC


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the addresses that sockets were connected to or names that were resolved; none is."""
    from storage_lib.log_store.kafka.kafka_cluster import close_connections

    # Those that earlier tests have left would be opened again, by their own thread.
    close_connections()
    found: list[Any] = []

    def refuse(*address: Any, **_: Any) -> None:
        found.append(address)
        message = "no network"
        raise OSError(message)

    monkeypatch.setattr(socket.socket, "connect", lambda _socket, address: refuse(address))
    monkeypatch.setattr(socket.socket, "connect_ex", lambda _socket, address: refuse(address))
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return found


@pytest.mark.parametrize("share", thinned(range(SHARES)))
def test_no_option_of_a_table_reaches_a_server_or_a_directory_outside_the_warehouse(
    share: int, warehouse: Path, tmp_path: Path, reached: list[Any]
) -> None:
    """Every option that the library and Paimon know, and the families, with values that are addresses."""
    outside = tmp_path / "outside"
    families = ("log.kafka.{}", "log.schema-registry.{}", "s3.{}", "hdfs.{}", "fields.{}", "jdbc.{}", "hive.{}", "x.{}")
    words = ("url", "endpoint", "ssl.cafile", "plugin.path", "sasl.jaas.config")
    keys = [*option_keys(), "path", "type", "uri", "metastore", "bucket-key"]
    keys += [key for kinds in (PASSED_THROUGH, REFUSED_FEATURES) for each in kinds.values() for key in each]
    keys += [f"{prefix}uri" for prefix in PREFIXES_PASSED_THROUGH] + [
        f.format(word) for f in families for word in words
    ]
    catalog = open_catalog(str(warehouse), {"log.system": "none"})
    taken = []
    for number, key in enumerate(list(dict.fromkeys(keys))[share::SHARES]):
        for text in (f"{outside}/{number}", "127.0.0.1:9", "http://127.0.0.1:9/x"):
            options = {"bucket": "1", "log.format": "debezium-avro", key: text}
            table = f"db.t{number}"
            task = ProvisionTableOperator(
                task_id="t", table=table, columns={"id": "BIGINT"}, primary_key=["id"], options=options
            )
            try:
                task.execute(task_context(task))
                catalog.load_table(table).append(pa.table({"id": [1]}))
                taken.append(key)
            except (StorageError, OSError):
                pass
            assert reached == [], f"{key}={text}"
            assert not outside.exists(), f"{key}={text}"
            catalog.drop_table(table, if_exists=True)
    assert not {BROKERS, REGISTRY, PATHS, ROOT, "iceberg.uri"} & set(taken)
