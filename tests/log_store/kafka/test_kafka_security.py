"""A table's log on a broker with encryption and authentication: accepted clients, and errors of others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition

from local_kafka import JARS, LocalKafka
from storage_lib import DynamicTable, InvalidInputError, StorageError, UnavailableError, open_catalog
from storage_lib.io.environment import SystemClock
from storage_lib.log_store.kafka.kafka_cluster import close_connections
from storage_lib.log_store.kafka.kafka_log_settings import KafkaLogSettings
from storage_lib.log_store.kafka.kafka_log_store import KafkaLogStore
from tests.support.certificates import Authority
from tests.support.log_changes import log_schema

pytestmark = [pytest.mark.kafka, pytest.mark.integration]

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
PASSWORD = "open sesame"  # noqa: S105  of this test's broker
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def broker(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKafka]:
    """Start a broker that accepts only clients with a password (SASL_SSL)."""
    if not JARS.exists():
        pytest.skip("Kafka is not set up: run `make setup`")
    users = f'username="broker" password="inner" user_broker="inner" user_writer="{PASSWORD}"'
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue("broker")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.trusted),
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f"{PLAIN} required {users};",
    }
    home = tmp_path_factory.mktemp("secured-broker")
    with LocalKafka(home, protocol="SASL_SSL", settings=settings) as started:
        yield started
    close_connections()


def credentials(authority: Authority, **others: str) -> dict[str, str]:
    return {
        "log.kafka.security.protocol": "SASL_SSL",
        "log.kafka.sasl.mechanism": "PLAIN",
        "log.kafka.sasl.username": "writer",
        "log.kafka.sasl.password": PASSWORD,
        "log.kafka.ssl.ca.location": str(authority.trusted),
    } | {f"log.kafka.{name.replace('_', '.')}": value for name, value in others.items()}


def make_table(broker: LocalKafka, directory: Path, options: dict[str, str]) -> DynamicTable:
    catalog = open_catalog(str(directory), {"log.kafka.bootstrap.servers": broker.bootstrap_servers, **options})
    topic = {"log.kafka.topic": directory.name}
    return catalog.create_table("db.secured", COLUMNS, primary_key=["id"], options=topic)


def test_a_table_lives_on_a_broker_with_tls_and_passwords(
    broker: LocalKafka, authority: Authority, tmp_path: Path
) -> None:
    table = make_table(broker, tmp_path, credentials(authority))
    stream = table.stream(startup="full")
    table.append(pa.table({"id": [1, 2], "v": ["a", "b"]}))

    changes = stream.poll()

    assert changes is not None
    assert sorted(changes["v"].to_pylist()) == ["a", "b"]
    assert read_by_librdkafka(broker, tmp_path.name, authority) == 2
    shown = " ".join(table.describe().values()) + repr(table) + str(table.schema.options)
    assert PASSWORD not in shown
    assert PASSWORD not in "".join(path.read_text() for path in Path(table.location).rglob("schema-*"))


def test_a_wrong_password_is_said_with_the_options_to_look_at(
    broker: LocalKafka, authority: Authority, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInputError, match=r"refuses the credentials.*log\.kafka\.sasl"):
        make_table(broker, tmp_path, credentials(authority, sasl_password="wrong"))  # noqa: S106
    assert not any(tmp_path.rglob("schema-*"))


def test_a_broker_that_nobody_we_trust_vouches_for_is_not_talked_to(
    broker: LocalKafka, authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path / "stranger", "another authority")
    options = credentials(authority, ssl_ca_location=str(stranger.trusted))

    with pytest.raises(StorageError, match=r"certificate.*log\.kafka\.ssl"):
        make_table(broker, tmp_path / "warehouse", options)


def test_who_speaks_plaintext_to_a_broker_that_encrypts_is_told_within_the_limit(broker: LocalKafka) -> None:
    settings = KafkaLogSettings(
        topic="unencrypted",
        table_uuid="unencrypted",
        client_options={"bootstrap.servers": broker.bootstrap_servers},
        limit_ms=2_000,
    )
    log = KafkaLogStore(log_schema(), settings, SystemClock())

    with pytest.raises(UnavailableError, match=r"See log\.kafka\.security\.protocol.*Is Kafka running at"):
        log.create()


def read_by_librdkafka(broker: LocalKafka, topic: str, authority: Authority) -> int:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "security.protocol": "SASL_SSL",
            "sasl.mechanisms": "PLAIN",
            "sasl.username": "writer",
            "sasl.password": PASSWORD,
            "ssl.ca.location": str(authority.trusted),
            "group.id": "test",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    messages = consumer.consume(2, 20)
    consumer.close()
    return sum(message.error() is None for message in messages)
