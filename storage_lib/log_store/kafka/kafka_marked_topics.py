"""Find the topics that this library created on a Kafka cluster, by the mark in their configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import kafka.errors
from kafka.protocol.admin import DescribeConfigsRequest
from kafka.protocol.metadata import MetadataRequest

from storage_lib.io.environment import Clock
from storage_lib.log_store.kafka.kafka_cluster import KafkaCluster, Retries
from storage_lib.log_store.kafka.kafka_log_settings import KafkaLogSettings
from storage_lib.log_store.kafka.kafka_topic import KafkaTopic, mark_in
from storage_lib.schema.options.table_options import TableOptions

_TOPIC_RESOURCE = 2
_TOPICS_AT_ONCE = 500


class KafkaMarkedTopics:
    """Finds and deletes marked topics. ``options`` are a catalog's (``log.kafka.*``)."""

    def __init__(self, options: Mapping[str, str], clock: Clock) -> None:
        """Raise ``InvalidInputError`` if ``options`` name no servers."""
        parsed = TableOptions.parse({key: text for key, text in options.items() if key.startswith("log.")})
        client_options = {**parsed.log_kafka_client, "bootstrap.servers": parsed.log_kafka_bootstrap_servers or ""}
        settings = KafkaLogSettings(topic="", table_uuid="", client_options=client_options)
        self._cluster = KafkaCluster.shared(settings.client_config, settings.limit_ms)
        self._clock = clock

    def find(self) -> dict[str, str]:
        """Return the mark of each marked topic, by name. Raises ``UnavailableError`` if Kafka does not answer."""
        retries = self._cluster.retries(self._clock, "list topics")
        metadata = self._ask(MetadataRequest(topics=None, allow_auto_topic_creation=False), retries)
        names = sorted(str(topic.name) for topic in metadata.topics if not topic.is_internal)
        found: dict[str, str] = {}
        for start in range(0, len(names), _TOPICS_AT_ONCE):
            resource = DescribeConfigsRequest.DescribeConfigsResource
            resources = [
                resource(resource_type=_TOPIC_RESOURCE, resource_name=name, configuration_keys=None)
                for name in names[start : start + _TOPICS_AT_ONCE]
            ]
            request = DescribeConfigsRequest(resources=resources, include_synonyms=False, include_documentation=False)
            for result in self._ask(request, retries).results:
                # Topics that were deleted meanwhile, or that we may not describe, have no configuration here.
                mark = mark_in({config.name: config.value for config in result.configs or ()})
                if mark is not None:
                    found[str(result.resource_name)] = mark
        return found

    def delete(self, topic: str, mark: str) -> None:
        """Delete the topic if it exists. Raises ``NotFoundError`` if it now has another mark."""
        KafkaTopic(self._cluster, topic, mark, self._clock).drop()

    def _ask(self, request: object, retries: Retries) -> Any:
        while True:
            try:
                return self._cluster.ask(None, request)
            except kafka.errors.KafkaError as failure:
                retries.wait(failure)
