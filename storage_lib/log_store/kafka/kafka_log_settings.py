"""Settings of a ``KafkaLogStore``, picklable, so that a Spark task can rebuild the store from them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.kafka.kafka_cluster import CLIENT_DEFAULTS
from storage_lib.log_store.kafka.kafka_compression import Compression
from storage_lib.schema.options.nearest import nearest
from storage_lib.schema.options.table_options import ChangelogMode, LogFormat, LogKeyFormat, OnCorrupt

_SERVERS = "bootstrap.servers"
_COMPRESSION = "compression.type"
_REPLICATION = "replication.factor"
_TOPIC = "topic"
_OURS = frozenset({_SERVERS, _COMPRESSION, _REPLICATION, _TOPIC})
_LIMIT_MS = 30_000
_TRANSACTION_TIMEOUT_MS = 900_000
_ALIASES = {
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "sasl.mechanisms": "sasl_mechanism",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
}
_WORDS = {
    # kafka-python connects without TLS for an unknown value.
    "security_protocol": ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    "sasl_mechanism": ("PLAIN", "GSSAPI", "OAUTHBEARER", "SCRAM-SHA-256", "SCRAM-SHA-512", "AWS_MSK_IAM"),
}
_SERVER = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:,\[\]]+)(:\d{1,5})?")
_TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaLogSettings:
    """Settings of one table's log on Kafka.

    ``client_options`` are the ``log.kafka.*`` options without that prefix, in Kafka's dotted spelling:
    ``bootstrap.servers`` (required), ``compression.type`` (none, lz4, zstd; default lz4),
    ``replication.factor`` (default: the cluster's), and options of the client, such as ``security.protocol``,
    ``sasl.mechanism``, ``sasl.plain.username``, ``ssl.cafile``. They may hold secrets, so reprs omit them.
    ``registry_options`` are the ``log.schema-registry.*`` options without that prefix, for Avro only.
    ``limit_ms`` is the time for retries of one operation before it raises ``UnavailableError``.
    """

    topic: str
    table_uuid: str
    client_options: Mapping[str, str] = field(repr=False)
    changelog_mode: ChangelogMode = ChangelogMode.AUTO
    format: LogFormat = LogFormat.DEBEZIUM_JSON
    key_format: LogKeyFormat = LogKeyFormat.JSON
    registry_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    retention_ms: int | None = None
    transaction_timeout_ms: int = _TRANSACTION_TIMEOUT_MS
    limit_ms: int = _LIMIT_MS
    on_corrupt: OnCorrupt = OnCorrupt.FAIL

    def __post_init__(self) -> None:
        """Raise ``InvalidInputError`` for options that the client does not support."""
        if not self.client_options.get(_SERVERS):
            message = "log.kafka.bootstrap.servers is missing; name at least one broker, such as localhost:9092"
            raise InvalidInputError(message)
        bad = [each for each in self.servers.split(",") if not _SERVER.fullmatch(each.strip())]
        if bad:
            message = (
                f"log.kafka.bootstrap.servers={self.servers!r}: {bad[0]!r} is not host:port, such as localhost:9092"
            )
            raise InvalidInputError(message)
        _ = self.client_config, self.compression, self.replication_factor

    @property
    def servers(self) -> str:
        """Addresses of the brokers, comma-separated."""
        return self.client_options[_SERVERS]

    @property
    def client_config(self) -> dict[str, object]:
        """The options with kafka-python's names and types."""
        config: dict[str, object] = {"bootstrap_servers": self.servers}
        for option, text in self.client_options.items():
            if option not in _OURS:
                key = _ALIASES.get(option, option.replace(".", "_"))
                config[key] = _typed(option, key, text)
        return config

    @property
    def compression(self) -> Compression:
        """The codec for new records."""
        return Compression.for_writing(self.client_options.get(_COMPRESSION, "lz4"))

    @property
    def replication_factor(self) -> int | None:
        """Replication factor of a new topic; None for the cluster's default."""
        text = self.client_options.get(_REPLICATION)
        if text is None:
            return None
        if not text.isdigit() or int(text) < 1:
            message = f"log.kafka.{_REPLICATION}={text!r} is not a number of brokers; use 3, or 1 on a single broker"
            raise InvalidInputError(message)
        return int(text)


def _typed(option: str, key: str, text: str) -> object:
    if key not in CLIENT_DEFAULTS:
        dotted = [each.replace("_", ".") for each in CLIENT_DEFAULTS]
        near = nearest(option, [*dotted, *_ALIASES, *_OURS])
        remedy = f"; did you mean log.kafka.{near}?" if near else ""
        message = f"unknown option log.kafka.{option}: the Kafka client has no such option{remedy}"
        raise InvalidInputError(message)
    allowed = _WORDS.get(key)
    if allowed is not None:
        if text.upper() not in allowed:
            message = f"log.kafka.{option}={text!r} is invalid; use one of {', '.join(allowed)}"
            raise InvalidInputError(message)
        return text.upper()
    default = CLIENT_DEFAULTS[key]
    if isinstance(default, bool):
        if text.lower() not in _TRUTHS:
            message = f"log.kafka.{option}={text!r} must be true or false"
            raise InvalidInputError(message)
        return _TRUTHS[text.lower()]
    if isinstance(default, int):
        if not text.isdigit():
            message = f"log.kafka.{option}={text!r} must be a whole number"
            raise InvalidInputError(message)
        return int(text)
    return text
