"""Names of the topics of a Kafka cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kafka.errors
from kafka.protocol.metadata import MetadataRequest

from storage_lib.log_store.kafka.kafka_cluster import KafkaCluster

if TYPE_CHECKING:
    from storage_lib.io.environment import Clock
    from storage_lib.log_store.kafka.kafka_log_settings import KafkaLogSettings


def topic_names(settings: KafkaLogSettings, clock: Clock) -> list[str]:
    """Return the names of all topics that the user may see. Raises ``UnavailableError`` if no broker answers."""
    cluster = KafkaCluster.shared(settings.client_config, settings.limit_ms)
    retries = cluster.retries(clock, "list the topics")
    while True:
        try:
            answer = cluster.ask(None, MetadataRequest(topics=None, allow_auto_topic_creation=False))
        except kafka.errors.KafkaError as failure:
            retries.wait(failure)
            continue
        return sorted(each.name for each in answer.topics)
