"""Options of Spark's Kafka sink for a table's topic: the table's client options in the words of Kafka's Java client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError

if TYPE_CHECKING:
    from storage_lib.log_store.kafka.kafka_log_settings import KafkaLogSettings

_PREFIX = "kafka."
_RECORD_BYTES_MAX = 32 << 20
_ALIKE = (
    "client_id",
    "connections_max_idle_ms",
    "metadata_max_age_ms",
    "receive_buffer_bytes",
    "reconnect_backoff_max_ms",
    "reconnect_backoff_ms",
    "request_timeout_ms",
    "retry_backoff_ms",
    "sasl_mechanism",
    "security_protocol",
    "send_buffer_bytes",
)
"""Options that both clients know under the same name and with the same meaning."""
_LOGINS = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_USER, _PASSWORD, _MECHANISM = "sasl_plain_username", "sasl_plain_password", "sasl_mechanism"


def sink_options(table: str, settings: KafkaLogSettings) -> dict[str, str]:
    """Return the options of ``format("kafka")`` for writing the table's topic; they may hold a password.

    Raises ``InvalidInputError`` for a client option that Kafka's Java client cannot be given.
    """
    config = dict(settings.client_config)
    producer = {
        "bootstrap.servers": str(config.pop("bootstrap_servers")),
        "acks": "all",
        "enable.idempotence": "true",
        "compression.type": settings.compression.name.lower(),
        # Without a wait, each row is a request of its own, and the broker has most of the work. Kafka 4's default.
        "linger.ms": "5",
        # The broker limits the size of a record; the client's own default is smaller than a topic's limit may be.
        "max.request.size": str(_RECORD_BYTES_MAX),
    }
    login = {key: config.pop(key) for key in (_USER, _PASSWORD) if config.get(key) is not None}
    for key, value in config.items():
        producer.update(_of_java(table, key, value))
    if login:
        producer["sasl.jaas.config"] = _login(table, str(config.get(_MECHANISM)), login)
    return {"topic": settings.topic, **{f"{_PREFIX}{key}": value for key, value in producer.items()}}


def _of_java(table: str, key: str, value: object) -> Mapping[str, str]:
    if key in _ALIKE:
        return {key.replace("_", "."): str(value)}
    if key == "ssl_cafile":
        return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(value)}
    if key == "ssl_check_hostname":
        return {} if value else {"ssl.endpoint.identification.algorithm": ""}
    raise _unknown(table, f"log.kafka.{key.replace('_', '.')}")


def _login(table: str, mechanism: str, login: Mapping[str, object]) -> str:
    module = _LOGINS.get(mechanism)
    if module is None:
        raise _unknown(table, f"log.kafka.sasl.mechanism={mechanism}")
    user, password = (_quoted(str(login.get(key, ""))) for key in (_USER, _PASSWORD))
    return f"{module} required username={user} password={password};"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _unknown(table: str, option: str) -> InvalidInputError:
    message = (
        f"table {table}: real_time=True writes the log with Spark's Kafka sink, and this library can't pass it the "
        f"option {option}. Write without real_time=True, or open the catalog without the option"
    )
    return InvalidInputError(message)
