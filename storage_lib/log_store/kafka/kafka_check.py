"""Check whether Kafka is reachable with given options, for a connection's test button and the doctor command."""

from __future__ import annotations

from collections.abc import Mapping

import kafka.errors
from kafka.protocol.metadata import MetadataRequest

from storage_lib.io.environment import Clock
from storage_lib.log_store.kafka.kafka_cluster import KafkaCluster
from storage_lib.log_store.kafka.kafka_log_settings import KafkaLogSettings
from storage_lib.schema.options.table_options import TableOptions

_LIMIT_MS = 5_000


def count_brokers(options: Mapping[str, str], clock: Clock, *, limit_ms: int = _LIMIT_MS) -> int:
    """Return the number of brokers. Opens its own connections and closes them.

    ``options`` are a catalog's (``log.kafka.*``). Raises ``UnavailableError`` if no broker answers within
    ``limit_ms``, and ``InvalidInputError`` for wrong credentials, certificates or options.
    """
    parsed = TableOptions.parse({key: text for key, text in options.items() if key.startswith("log.")})
    client_options = {**parsed.log_kafka_client, "bootstrap.servers": parsed.log_kafka_bootstrap_servers or ""}
    settings = KafkaLogSettings(topic="", table_uuid="", client_options=client_options, limit_ms=limit_ms)
    cluster = KafkaCluster(settings.client_config, limit_ms)
    try:
        retries = cluster.retries(clock, "reach Kafka")
        while True:
            try:
                return len(cluster.ask(None, MetadataRequest(topics=[], allow_auto_topic_creation=False)).brokers)
            except kafka.errors.KafkaError as failure:
                retries.wait(failure)
    finally:
        cluster.close()
