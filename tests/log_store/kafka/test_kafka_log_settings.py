"""Options of the Kafka log: typed, validated before any connection, and never printed."""

from __future__ import annotations

import pickle

import pytest

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.kafka.kafka_compression import Compression
from storage_lib.log_store.kafka.kafka_log_settings import KafkaLogSettings


def settings(**client_options: str) -> KafkaLogSettings:
    dotted = {key.replace("_", "."): value for key, value in client_options.items()}
    return KafkaLogSettings(topic="t", table_uuid="u", client_options={"bootstrap.servers": "b:9092", **dotted})


def test_client_options_get_the_clients_spelling_and_types() -> None:
    config = settings(
        security_protocol="SASL_SSL",
        sasl_mechanism="PLAIN",
        sasl_plain_username="me",
        sasl_password="secret",  # noqa: S106  not one
        ssl_ca_location="/ca.pem",
        ssl_check_hostname="false",
        request_timeout_ms="5000",
    ).client_config

    assert config == {
        "bootstrap_servers": "b:9092",
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "me",
        "sasl_plain_password": "secret",
        "ssl_cafile": "/ca.pem",
        "ssl_check_hostname": False,
        "request_timeout_ms": 5_000,
    }


def test_our_own_options_stay_with_us() -> None:
    chosen = settings(compression_type="zstd", replication_factor="3", topic="ignored")

    assert chosen.client_config == {"bootstrap_servers": "b:9092"}
    assert (chosen.compression, chosen.replication_factor) == (Compression.ZSTD, 3)
    assert (settings().compression, settings().replication_factor) == (Compression.LZ4, None)


@pytest.mark.parametrize(
    ("option", "value", "complaint"),
    [
        ("security_protocol", "SASL-SSL", "use one of PLAINTEXT, SSL"),
        ("sasl_mechanism", "PLAINN", "use one of PLAIN"),
        ("bootstrap_servers", "nohost:x", "is not host:port"),
        ("bootstrap_servers", "a:9092,,b:9092", "is not host:port"),
        ("security_protocoll", "SSL", r"did you mean log\.kafka\.security\.protocol"),
        ("compression_type", "brotli", "none, lz4, zstd"),
        ("replication_factor", "many", "not a number of brokers"),
        ("request_timeout_ms", "5 s", "whole number"),
        ("ssl_check_hostname", "yes", "true or false"),
        ("bootstrap_servers", "", r"bootstrap\.servers is missing"),
    ],
)
def test_wrong_options_are_refused_by_name(option: str, value: str, complaint: str) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        settings(**{option: value})


def test_secrets_are_in_no_repr_but_travel() -> None:
    chosen = settings(sasl_plain_password="hunter2")  # noqa: S106  not one

    assert "hunter2" not in repr(chosen)
    assert pickle.loads(pickle.dumps(chosen)) == chosen  # noqa: S301  our own bytes
